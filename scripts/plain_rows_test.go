package scripts_test

const plainRows = `
acquire: NAME / ARG ARG ARG WAITQUEUE SETTINGS TOKENS OR- OR0
free                  |              | a 1 30000 | (nil)      | a=1 30000
free, to re-enter     |              | a 2 30000 | [-2 ]
own, one more         | a=1 30000    | a 2 60000 | (nil)      | a=2 60000
own, without a TTL    | a=1          | a 1 30000 | (nil)      | a=1 30000
other                 | b=2 60000    | a 1 30000 | [60000 b]  | same
other, without a TTL  | b=2          | a 1 30000 | [-1 b]     | same
wrong type            | 'x'          | a 1 30000 | -WRONGTYPE | same
foreign               | email=x@y password=7 | a 1 30000 | -WRONGTYPE the key is a hash with 2 fields | same
foreign, with a TTL   | visits=7 60000       | a 1 30000 | -WRONGTYPE the key is a hash with 1 fields | same
foreign, one mode     | mode=read            | a 1 30000 | -WRONGTYPE | same
half foreign          | b=1 email=x 30000    | a 1 30000 | -WRONGTYPE the key is a hash with 2 fields | same
half foreign, own     | a=1 email=x 30000    | a 2 30000 | -WRONGTYPE | same
two owners            | b=1 c=1 30000        | a 1 30000 | -WRONGTYPE | same
no hold count         | b=x 30000            | a 1 30000 | -WRONGTYPE | same
foreign, with an entry | email=x              | u:1 1 30000 1.4.0.5.0 | -WRONGTYPE | same
# with a wait queue
free, the entries have expired       | >v=2.7.0.0.1@-30 ^@-20 >15000                                 | u:1 1 30000 1.4.0.0.1   | (nil)         | u:1=1 30000
free, the entry does not listen      | >v=2.7.0.0.0@-3 ^@-1 >15000                                   | u:1 1 30000 1.4.0.0.1   | (nil)         | u:1=1 30000, >v=2.7.0.0.0@-3 ^@-1 >15000
free, the client has gone            | >x=2.7.0.0.1@-3 ^@-1 >15000                                   | u:1 1 30000 1.4.0.0.1   | (nil)         | u:1=1 30000
free, own turn                       | >u=1.3.0.0.1@-3 ^@-1 >v=2.7.0.0.1@-2 ^@-1 >15000              | u:1 1 30000 1.4.0.0.1   | (nil)         | u:1=1 30000, >v=2.7.0.0.1@-2 ^@-1 >20000 then u:1=1 30000, >v=2.7.0.0.1@-2 ^@-1 >20000
free, own turn of a later term       | >u=2.3.0.0.1@-3 ^@-1 >15000                                   | u:1 1 30000 1.4.0.0.1   | (nil)         | u:1=1 30000, >u=2.3.0.0.1@-3 ^@-1 >15000
free, another's turn                 | >v=2.7.0.0.1@-3 ^@-1 >15000                                   | u:1 1 30000 1.4.0.0.1   | [20000 v:2]    | v:2=1 20000, >u=1.4.0.0.1@0 ^@0 >20000 | v>2.7.0
free, another's turn, a try          | >v=2.7.0.0.1@-3 ^@-1 >15000                                   | u:1 1 30000             | [20000 v:2]    | v:2=1 20000 | v>2.7.0
free, the turn of one in a fenced    | >v=2.7.0.3.1@-3 ^@-1 >15000 /'7'                              | u:1 1 30000             | [20000 v:2]    | v:2=1 20000 /'10' | v>2.7.10
free, behind one that has gone       | >x=9.7.0.0.1@-4 ^@-1 >v=2.7.0.0.1@-3 ^@-1 >w=1.1.0.0.1@-2 ^@-1 >15000 | u:1 1 30000     | [20000 v:2]    | v:2=1 20000, >w=1.1.0.0.1@-2 ^@-1 >20000 | v>2.7.0
free, another's turn, then own       | >v=2.7.0.0.1@-3 ^@-1 >u=1.3.0.0.1@-2 ^@-1 >15000              | u:1 1 30000 1.4.0.0.1   | [20000 v:2]    | v:2=1 20000, >u=1.4.0.0.1@-2 ^@0 >20000 | v>2.7.0
left to others                       | >v=2.7.0.0.1@-3 ^@-1 >open@3 >15000                           | u:1 1 30000 1.4.0.0.1   | [3000 ]       | >v=2.7.0.0.1@-3 ^@-1 >u=1.4.0.0.1@0 ^@0 >open@3 >20000
left to others, a try                | >open@3 >15000                                                | u:1 1 30000             | [3000 ]       | same
left to others from now on           | >open@5 >15000                                                | u:1 1 30000             | [5000 ]       | same
left to others, until the clock was set back | >open@6 >15000                                        | u:1 1 30000             | (nil)         | u:1=1 30000, >open@6 >15000
left to others until now             | >open@0 >15000                                                | u:1 1 30000             | (nil)         | u:1=1 30000, >open@0 >15000
left to others, and released         | >u=1.3.0.0.1@-3 ^@-1 >open@3 >turns=2 >15000                  | u:1 1 30000 1.4.0.0.1 1 | (nil)         | u:1=1 30000, >turns=2 >6000
left to others once                  | >open@-1 >15000                                               | u:1 1 30000 1.4.0.0.1   | (nil)         | u:1=1 30000, >open@-1 >15000
other, an entry                      | v:2=1 40000                                                     | u:1 1 30000 1.4.0.5.0   | [40000 v:2]   | v:2=1 40000, >u=1.4.0.5.0@0 ^@0 >20000
other, a try                         | v:2=1 40000, >w=1.1.0.0.1@-3 ^@-1 >15000                        | u:1 1 30000             | [40000 v:2]   | same
other, the entry confirmed           | v:2=1 40000, >u=1.3.0.0.0@-3 ^@-1 >15000                        | u:1 1 30000 1.4.0.0.1   | [40000 v:2]   | v:2=1 40000, >u=1.4.0.0.1@-3 ^@0 >20000
other, the entry confirmed too late  | v:2=1 40000, >u=1.3.0.0.1@-30 ^@-20 >15000                      | u:1 1 30000 1.4.0.0.1   | [40000 v:2]   | v:2=1 40000, >u=1.4.0.0.1@0 ^@0 >20000
other, a late command                | v:2=1 40000, >u=3.3.0.0.1@-3 ^@-1 >15000                        | u:1 1 30000 1.4.0.0.1   | [40000 v:2]   | same
other, it was left to               | v:2=1 40000, >w=1.1.0.0.1@-3 ^@-1 >open@3 >15000                | u:1 1 30000             | [40000 v:2]   | v:2=1 40000, >w=1.1.0.0.1@-3 ^@-1 >20000
own, a transfer that was missed      | u:1=1 20000, >v=2.7.0.0.1@-3 ^@-1 >15000                         | u:1 1 30000 1.4.0.0.1   | (nil)         | u:1=1 30000, >v=2.7.0.0.1@-3 ^@-1 >15000
own, in the queue                    | u:1=1 20000, >u=1.7.0.0.1@-3 ^@-1 >turns=1 >15000                | u:1 1 30000 1.4.0.0.1   | (nil)         | u:1=1 30000, >turns=1 >6000
kept for a MultiLock                 | >v=2.7.0.0.0.0@-3 ^@-1 >15000                                   | u:1 1 30000 1.4.0.0.1   | [10000 ]      | >v=2.7.0.0.0.k0@-3 ^@-1 >u=1.4.0.0.1@0 ^@0 >20000
kept for a MultiLock since           | >v=2.7.0.0.0.k-4@-5 ^@-1 >15000                                 | u:1 1 30000             | [6000 ]       | same
kept for a MultiLock, the clock was set back | >v=2.7.0.0.0.k5@-5 ^@-1 >15000                           | u:1 1 30000             | [10000 ]      | >v=2.7.0.0.0.k0@-5 ^@-1 >20000 then >v=2.7.0.0.0.k0@-5 ^@-1 >20000
kept for a MultiLock with a long TTL | >v=400000:2.7.0.0.0.k-59@-99 ^@-1 >15000                        | u:1 1 30000             | [1000 ]       | same
kept for that for a minute           | >v=400000:2.7.0.0.0.k-60@-99 ^@-1 >15000                        | u:1 1 30000             | (nil)         | u:1=1 30000, >v=400000:2.7.0.0.0.-@-99 ^@-1 >400000
an entry of a day                    | >v=86400000:2.7.0.0.1@-3 ^@-1 >15000                            | u:1 1 30000             | [86400000 v:2] | v:2=1 86400000 | v>2.7.0
an entry of more than a day          | >v=86400001:2.7.0.0.1@-3 ^@-1 >15000                            | u:1 1 30000             | (nil)         | u:1=1 30000
kept for a MultiLock for too long    | >v=2.7.0.0.0.k-11@-15 ^@-1 >15000                               | u:1 1 30000             | (nil)         | u:1=1 30000, >v=2.7.0.0.0.-@-15 ^@-1 >20000
kept for a MultiLock until now       | >v=2.7.0.0.0.k-10@-15 ^@-1 >15000                               | u:1 1 30000             | (nil)         | u:1=1 30000, >v=2.7.0.0.0.-@-15 ^@-1 >20000
for too long, then another's turn    | >v=2.7.0.0.0.k-11@-15 ^@-1 >w=1.1.0.0.1@-2 ^@-1 >15000          | u:1 1 30000             | [20000 w:1]   | w:1=1 20000, >v=2.7.0.0.0.-@-15 ^@-1 >20000 | w>1.1.0
kept for two MultiLocks for too long | >v=2.7.0.0.0.k-11@-15 ^@-1 >w=8.8.0.0.0.k-11@-14 ^@-1 >15000    | u:1 1 30000             | [1 ] then (nil) | >v=2.7.0.0.0.-@-15 ^@-1 >w=8.8.0.0.0.k-11@-14 ^@-1 >20000 then u:1=1 30000, >v=2.7.0.0.0.-@-15 ^@-1 >w=8.8.0.0.0.-@-14 ^@-1 >20000
not kept for a MultiLock any more    | >v=2.7.0.0.0.-@-15 ^@-1 >15000                                  | u:1 1 30000             | (nil)         | u:1=1 30000, >v=2.7.0.0.0.-@-15 ^@-1 >15000
a part, an entry that reserves       | v:2=1 40000                                                     | u:1 1 30000 1.4.0.0.0.r | [40000 v:2]   | v:2=1 40000, >u=1.4.0.0.0.0@0 ^@0 >20000
a part, kept for itself              | >u=1.3.0.0.0.k-4@-5 ^@-1 >v=2.7.0.0.1@-3 ^@-1 >15000            | u:1 1 30000 1.4.0.0.0.r | (nil)         | u:1=1 30000, >v=2.7.0.0.1@-3 ^@-1 >20000
no entry in it                       | >v=what@-3 ^@-1 >15000                                        | u:1 1 30000             | (nil)         | u:1=1 30000
a queue of another type              | waitqueue 'x' 30000                                                  | u:1 1 30000             | -WRONGTYPE    | same

release: NAME / ARG ARG ARG CHANNEL WAITQUEUE SETTINGS TOKENS
own, wholly at once         | a=3 30000    | a 0 60000 | 0 then -1  |           | 0
own, without a TTL          | a=1          | a 0 60000 | 0 then -1  |           | 0
own, half foreign           | a=1 email=7 30000 | a 0 60000 | 0 then -1 | email=7 | 0
own, beside another owner   | a=1 email=7 b=1 30000 | a 0 60000 | 0 then -1 | b=1 email=7 30000 | 0
own, with a mode            | a=1 mode=read 30000 | a 0 60000 | 0 then -1 | mode=read 30000 | 0
own, one less without a TTL | a=3          | a 2 60000 | 2          | a=2 60000
other, one less             | b=1 30000    | a 1 60000 | -1         | same
free                        |              | a 0 60000 | -1
wrong type                  | 'x'          | a 0 60000 | -WRONGTYPE | same
wrong type, one less        | 'x' 30000    | a 1 60000 | -WRONGTYPE | same
# with a wait queue
none listens                    | u:1=1 30000, >v=2.7.0.0.0@-3 ^@-1 >15000                                              | u:1 0 60000   | 0 then -1 | >v=2.7.0.0.0@-3 ^@-1 >15000 | 0
all have gone                   | u:1=1 30000, >x=2.7.0.0.1@-3 ^@-1 >15000                                              | u:1 0 60000   | 0 then -1 |                              | 0
the only one                    | u:1=1 30000, >v=2.7.0.0.1@-2 ^@-1 >15000                                              | u:1 0 60000   | 0 then -1 | v:2=1 20000 | v>2.7.0
the only one, half foreign      | email=7 u:1=1 30000, >v=2.7.0.0.1@-2 ^@-1 >15000                                      | u:1 0 60000   | 0 then -1 | email=7, >v=2.7.0.0.1@-2 ^@-1 >15000 | 0
the next, half foreign          | email=7 u:1=1 30000, >v=2.7.0.0.1@-2 ^@-1 >w=8.8.0.0.1@-1 ^@-1 >15000                 | u:1 0 60000   | 0 then -1 | email=7, >v=2.7.0.0.1@-2 ^@-1 >w=8.8.0.0.1@-1 ^@-1 >15000 | 0
the only one, of more than a day | u:1=1 30000, >v=86400001:2.7.0.0.1@-2 ^@-1 >15000                                   | u:1 0 60000   | 0 then -1 |                              | 0
the only one, dead              | u:1=1 30000, >v=2.7.0.0.1@-30 ^@-20 >15000                                            | u:1 0 60000   | 0 then -1 |                              | 0
the only one, not yet dead      | u:1=1 30000, >v=2.7.0.0.1@-30 ^@-19 >15000                                            | u:1 0 60000   | 0 then -1 | v:2=1 20000 | v>2.7.0
before a foreign client         | u:1=1 30000, >v=2.7.0.0.1@-2 ^@-1 >15000 <3-2                                          | u:1 0 60000   | 0 then -1 | v:2=1 20000, >turns=1 >6000 | v>2.7.0
the next                        | u:1=1 30000, >x=9.9.0.0.1@-3 ^@-1 >w=2.7.0.0.1@-2 ^@-1 >v=8.8.0.0.1@-1 ^@-1 >15000    | u:1 0 60000   | 0 then -1 | w:2=1 20000, >v=8.8.0.0.1@-1 ^@-1 >20000 | w>2.7.0
the next, with a TTL of its own | u:1=1 30000, >v=5000:9.9.0.0.1@-9 ^@-7 >w=40000:2.7.0.0.1@-90 ^@-30 >y=8.8.0.0.1@-1 ^@-1 >15000 | u:1 0 60000 | 0 then -1 | w:2=1 40000, >y=8.8.0.0.1@-1 ^@-1 >20000 | w>2.7.0
the next, before a longer TTL   | u:1=1 30000, >w=2.7.0.0.1@-90 ^@-1 >v=40000:8.8.0.0.1@-1 ^@-1 >15000                 | u:1 0 60000   | 0 then -1 | w:2=1 20000, >v=40000:8.8.0.0.1@-1 ^@-1 >40000 | w>2.7.0
the next, with tokens           | u:1=1 30000, >v=2.7.0.3.1@-2 ^@-1 >15000 /'7' 60000                                   | u:1 0 60000   | 0 then -1 | v:2=1 20000 /'10' | v>2.7.10
the next, a counter of no kind  | u:1=1 30000, >v=2.7.0.3.1@-2 ^@-1 >15000 /a=1                                         | u:1 0 60000   | 0 then -1 | v:2=1 20000 /a=1 | v>2.7.0
the next, no tokens are left    | u:1=1 30000, >v=2.7.0.3.1@-2 ^@-1 >15000 /'9007199254740989'                            | u:1 0 60000   | 0 then -1 | v:2=1 20000 /'9007199254740989' | v>2.7.0
the next, the last tokens       | u:1=1 30000, >v=2.7.0.3.1@-2 ^@-1 >15000 /'9007199254740988'                            | u:1 0 60000   | 0 then -1 | v:2=1 20000 /'9007199254740991' | v>2.7.9007199254740991
the next is the same client     | u:1=1 30000, >u=2.7.0.0.1@-2 ^@-1 >15000                                              | u:1 0 60000   | 0 then -1 | u:2=1 20000 | u>2.7.0
leaves the queue                | u:3=1 30000, >u=2.7.0.0.1@-2 ^@-1 >15000                                              | u:3 0 60000   | 0 then -1 |                              | 0
leaves the queue without the lock | w:1=1 30000, >u=2.7.0.0.1@-2 ^@-1 >v=8.8.0.0.1@-1 ^@-1 >15000                        | u:2 0 60000   | -1        | w:1=1 30000, >v=8.8.0.0.1@-1 ^@-1 >20000
a late one                      | w:1=1 30000, >u=2.7.0.0.1@-2 ^@-1 >15000                                              | u:1 0 60000   | -1        | same
one less                        | u:1=2 30000, >v=2.7.0.0.1@-2 ^@-1 >15000                                              | u:1 1 60000   | 1         | u:1=1 60000, >v=2.7.0.0.1@-2 ^@-1 >15000
kept for a MultiLock            | u:1=1 30000, >v=2.7.0.0.0.0@-3 ^@-1 >w=8.8.0.0.1@-2 ^@-1 >15000                        | u:1 0 60000   | 0 then -1 | >v=2.7.0.0.0.k0@-3 ^@-1 >w=8.8.0.0.1@-2 ^@-1 >20000 | 0
a MultiLock withdraws           | >v=2.7.0.0.0.k-1@-3 ^@-1 >w=8.8.0.0.1@-2 ^@-1 >15000                                  | v:2 0 60000   | -1        | w:8=1 20000 | w>8.8.0
a MultiLock withdraws for another | >v=2.7.0.0.0.k-1@-3 ^@-1 >w=8.8.0.0.0.0@-2 ^@-1 >15000                                | v:2 0 60000   | -1        | >w=8.8.0.0.0.k0@-2 ^@-1 >20000 | 0
a MultiLock behind withdraws    | w:1=1 30000, >v=2.7.0.0.0.0@-3 ^@-1 >w=8.8.0.0.1@-2 ^@-1 >15000                        | v:2 0 60000   | -1        | w:1=1 30000, >w=8.8.0.0.1@-2 ^@-1 >20000
the next, before a MultiLock    | u:1=1 30000, >w=8.8.0.0.1@-3 ^@-1 >v=2.7.0.0.0.0@-2 ^@-1 >15000                        | u:1 0 60000   | 0 then -1 | w:8=1 20000, >v=2.7.0.0.0.0@-2 ^@-1 >20000 | w>8.8.0
one foreign client of two, first turn | u:1=1 30000, >v=2.7.0.0.1@-3 ^@-1 >w=8.8.0.0.1@-2 ^@-1 >15000 <3-2                      | u:1 0 60000   | 0 then -1 | v:2=1 20000, >w=8.8.0.0.1@-2 ^@-1 >turns=1 >20000 | v>2.7.0
one foreign client of two, third turn | u:1=1 30000, >v=2.7.0.0.1@-3 ^@-1 >w=8.8.0.0.1@-2 ^@-1 >turns=2 >15000 <3-2             | u:1 0 60000   | 0 then -1 | >v=2.7.0.0.1@-3 ^@-1 >w=8.8.0.0.1@-2 ^@-1 >open@5 >20000 | 0
a foreign client, all others gone | u:1=1 30000, >x=2.7.0.0.1@-3 ^@-1 >turns=2 >15000 <1                                 | u:1 0 60000   | 0 then -1 | >turns=2 >6000 | 0
a queue of another type         | u:1=1 30000, waitqueue 'x' 30000                                                           | u:1 0 60000   | 0 then -1 | waitqueue 'x' 30000  | 0

renew: NAME / ARGS
own                      | a=1 30000 | a 60000 | [1]  | a=1 60000
own, without a TTL       | a=1       | a 60000 | [1]  | a=1 60000
gone                     |           | a 60000 | [0]
other                    | b=1 30000 | a 60000 | [-1] | same
wrong type               | 'x' 30000 | a 60000 | [-1] | same
own, behind the bad ones | a=1 30000 | a 60000 | [1]  | a=1 60000

yield: NAME / ARG ARG ARG CHANNEL WAITQUEUE SETTINGS TOKENS OR-
all listeners use the queue          | a=1 30000 <2-2 | a 60000 0 | [0 0]             | a=1 60000
the owner not yet                    | a=1 30000    | a 60000 0 | [0 0]             | a=1 60000
without a TTL                        | a=1          | a 60000 0 | [0 0]             | a=1 60000
others                               | a=1 30000 <2 | a 60000 0 | [1 1] then [-1 0] | >open@5 >6000 | 0
half foreign                         | a=1 email=7 30000 <2 | a 60000 0 | [1 1] then [-1 0] | email=7, >open@5 >6000 | 0
opened for none                      | a=1 30000    | a 60000 1 | [1 1] then [-1 0] | >open@5 >6000 | 0
other                                | b=1 30000 <2 | a 60000 1 | [-1 0]            | same
wrong type                           | 'x' 30000 <2 | a 60000 1 | -WRONGTYPE        | same
# with a wait queue or an entry
none, for an entry           | u:1=1 30000                                                                     | u:1 60000 0 2.7.0.0.1 | [0 0]             | u:1=1 60000
only its own entry           | u:1=1 30000, >u=2.7.0.0.1@-2 ^@-1 >15000 <1-1                                   | u:1 60000 0 2.7.0.0.1 | [0 0]             | u:1=1 60000, >u=2.7.0.0.1@-2 ^@-1 >15000
to the next                  | u:1=1 30000, >x=9.9.0.0.1@-3 ^@-1 >v=2.7.0.0.1@-2 ^@-1 >w=8.8.0.0.1@-1 ^@-1 >15000 | u:1 60000 0 2.7.0.0.1 | [1 0] then [-1 0] | v:2=1 20000, >w=8.8.0.0.1@-1 ^@-1 >u=2.7.0.0.1@0 ^@0 >20000 | v>2.7.0
to the next, not to itself   | u:1=1 30000, >u=2.6.0.0.1@-3 ^@-1 >v=2.7.0.0.1@-2 ^@-1 >15000                   | u:1 60000 0 2.7.0.0.1 | [1 0] then [-1 0] | v:2=1 20000, >u=2.7.0.0.1@0 ^@0 >20000 | v>2.7.0
to the next, with no entry   | u:1=1 30000, >v=2.7.0.0.1@-2 ^@-1 >15000                                        | u:1 60000 0           | [1 0] then [-1 0] | v:2=1 20000 | v>2.7.0
to a foreign client, all others gone | u:1=1 30000, >x=2.7.0.0.1@-3 ^@-1 >15000 <1                             | u:1 60000 0 2.7.0.0.1 | [1 1] then [-1 0] | >u=2.7.0.0.1@0 ^@0 >open@5 >20000 | 0
to a foreign client          | u:1=1 30000 <2                                                                  | u:1 60000 0 2.7.0.0.1 | [1 1] then [-1 0] | >u=2.7.0.0.1@0 ^@0 >open@5 >20000 | 0
to the queue before a foreign client | u:1=1 30000, >v=2.7.0.0.1@-3 ^@-1 >15000 <3-2                                     | u:1 60000 0 2.7.0.0.1 | [1 0] then [-1 0] | v:2=1 20000, >u=2.7.0.0.1@0 ^@0 >turns=1 >20000 | v>2.7.0
to a foreign client after the queue | u:1=1 30000, >v=2.7.0.0.1@-3 ^@-1 >turns=1 >15000 <3-2                            | u:1 60000 0 2.7.0.0.1 | [1 1] then [-1 0] | >v=2.7.0.0.1@-3 ^@-1 >u=2.7.0.0.1@0 ^@0 >open@5 >20000 | 0
forced                       | u:1=1 30000, >v=2.7.0.0.1@-3 ^@-1 >turns=1 >15000                               | u:1 60000 1 2.7.0.0.1 | [1 1] then [-1 0] | >v=2.7.0.0.1@-3 ^@-1 >u=2.7.0.0.1@0 ^@0 >open@5 >20000 | 0
forced, to none              | u:1=1 30000                                                                     | u:1 60000 1 2.7.0.0.1 | [1 1] then [-1 0] | >u=2.7.0.0.1@0 ^@0 >open@5 >20000 | 0

force_release: NAME / CHANNEL ARGS
held without a TTL     | a=1               | a         | 1 then 0   |      | 0
held by one of several | b=1 30000         | a b       | 1 then 0   |      | 0
held by another since  | b=1 30000         | a         | 0          | same
by another term since  | u:2=1 30000       | u:1       | 0          | same
none is named          | a=1               |           | 0          | same
free                   |                   | a         | 0
no owner is named      | a=1 mode=read     | mode      | 0          | same
a read/write lock      | mode=read u:1=1   | u:1       | 1 then 0   |      | 0
a writer               | mode=write u:1:write=1 | u:1  | 1 then 0   |      | 0
of two readers, one    | mode=read u:1=1 v:1=1 | u:1   | 1 then 0   | mode=read v:1=1 | 0
wrong type             | 'x' 30000         | a         | -WRONGTYPE | same
foreign                | email=7           | a         | -WRONGTYPE | same
foreign, named         | email=7           | email     | -WRONGTYPE | same
half foreign           | a=1 email=7 30000 | a         | -WRONGTYPE | same
no hold count          | a=x               | a         | -WRONGTYPE | same

inspect: NAME / CHANNEL
held                | a=2 30000    |  | [30000 0 a 2] | same
held without a TTL  | a=1          |  | [-1 0 a 1]    | same
waited for          | a=1 30000 <2 |  | [30000 2 a 1] | same
free                |              |  | [-2 0  ]
wrong type          | 'x' 30000    |  | -WRONGTYPE    | same
foreign             | email=7      |  | -WRONGTYPE    | same
half foreign        | a=2 email=7  |  | -WRONGTYPE    | same

fenced_acquire: NAME / ARG ARG ARG ARG TOKENS WAITQUEUE SETTINGS OR- OR0
free                              |                      | a 1 30000 1  | [1 1 ] then [1 2 ]   | a=1 30000 /'1' then a=1 30000 /'2'
free, many tokens                 | /'7'                 | a 1 30000 10 | [1 17 ] then [1 27 ] | a=1 30000 /'17' then a=1 30000 /'27'
free, to re-enter                 | /'7'                 | a 2 30000 1  | [-1 0 ]              | same
own, once more                    | a=1 30000 /'7'       | a 2 60000 0  | [1 0 ]               | a=2 60000 /'7'
other, without end                | b=2 /'7'             | a 1 30000 1  | [0 -1 b]             | same
other, the counter would end      | b=2 /'7' 60000       | a 1 30000 1  | [0 -1 b]             | same
the counter would end             | /'7' 60000           | a 1 30000 1  | [1 8 ] then [1 9 ]   | a=1 30000 /'8' then a=1 30000 /'9'
re-entered, the counter would end | a=1 30000 /'7' 60000 | a 2 30000 0  | [1 0 ]               | a=2 30000 /'7'
wrong type                        | 'x' /'7'             | a 1 30000 1  | -WRONGTYPE           | same
foreign                           | email=x /'7'         | a 1 30000 1  | -WRONGTYPE           | same
half foreign, own                 | a=1 email=x /'7'     | a 2 30000 1  | -WRONGTYPE           | same
counter of another type           | /a=1                 | a 1 30000 1  | -WRONGTYPE           | same
counter that does not count       | /'x'                 | a 1 30000 1  | -WRONGTYPE redisson_lock_token | same
counter that has lost some        | /'7'                 | a 1 30000 3+9 | [1 12 ] then [1 15 ] | a=1 30000 /'12' then a=1 30000 /'15'
counter that has lost all         |                      | a 1 30000 3+9 | [1 12 ] then [1 15 ] | a=1 30000 /'12' then a=1 30000 /'15'
counter that has lost none        | /'9'                 | a 1 30000 3+9 | [1 12 ] then [1 15 ] | a=1 30000 /'12' then a=1 30000 /'15'
the last tokens                   | /'9007199254740988'  | a 1 30000 3  | [1 9007199254740991 ] then -BADVALUE | a=1 30000 /'9007199254740991'
too few tokens are left           | /'9007199254740989'  | a 1 30000 3  | -BADVALUE redisson_lock_token | same
too few are left, of what was had | /'7'                 | a 1 30000 3+9007199254740989 | -BADVALUE redisson_lock_token | same
# with a wait queue
free, another's turn    | >v=2.7.0.3.1@-3 ^@-1 >15000 /'7'  | u:1 1 30000 2 1.4.0.2.1 | [0 20000 v:2]  | v:2=1 20000, >u=1.4.0.2.1@0 ^@0 >20000 /'10' | v>2.7.10
free, left to others    | >open@3 >15000 /'7'               | u:1 1 30000 2 1.4.0.2.1 | [0 3000 ]     | >u=1.4.0.2.1@0 ^@0 >open@3 >20000 /'7'
free, and released      | >open@3 >15000 /'7'               | u:1 1 30000 2 1.4.0.2.1 1 | [1 9 ] then [1 11 ] | u:1=1 30000 /'9' then u:1=1 30000 /'11'

draw: TOKENS / ARGS
reserves                 | /'7'       | 3 | [1 10 ] then [1 13 ] | /'10' then /'13'
a counter that would end | /'7' 60000 | 3 | [1 10 ] then [1 13 ] | /'10' then /'13'
none yet                 |            | 3 | [1 3 ] then [1 6 ]   | /'3' then /'6'
lost some                | /'7'       | 3+9 | [1 12 ] then [1 15 ] | /'12' then /'15'
too few are left         | /'9007199254740989' | 3 | -BADVALUE redisson_lock_token | same

majority_acquire: NAME RECORD / ARGS 0 fresh known 0
free                  |           | a 1 30000 | [1 0  ]    | a=1 30000
free, to re-enter     |           | a 2 30000 | [-1 0  ]
own, one more         | a=1 30000 | a 2 60000 | [1 0  ]    | a=2 60000
other, without an end | b=2       | a 1 30000 | [0 -1 b ]  | same
wrong type            | 'x'       | a 1 30000 | -WRONGTYPE | same
foreign               | email=7   | a 1 30000 | -WRONGTYPE | same
half foreign          | b=1 email=7 | a 1 30000 | -WRONGTYPE | same
`
