package scripts_test

const readWriteRows = `
read_write_set: NAME / ARG ARG ARG ARG HOLDS ARG RWCHANNEL WAITQUEUE SETTINGS OR- OR0
# a writer
free                         |                                                              | u:1 1 0 30000 0    | [1 0 ]              | mode=write u:1:write=1 30000
free, to re-enter            |                                                              | u:1 2 0 30000 0 | [-1 0 ]
own, once more               | mode=write u:1:write=1 30000                                 | u:1 2 0 40000 0    | [1 0 ]              | mode=write u:1:write=2 40000
own, and read                | mode=write u:1:write=1 30000                                 | u:1 1 2 40000 0    | [1 0 ]              | mode=write u:1:write=1 u:1=2 40000, u:1#1 40000, u:1#2 40000
own, and read no more        | mode=write u:1:write=1 u:1=1 30000, u:1#1 30000              | u:1 1 0 40000 0    | [1 0 ]              | mode=write u:1:write=1 40000
other, without end           | mode=write v:1:write=1                                       | u:1 1 0 30000 0    | [0 -1 v:1:write]    | same
other reads                  | mode=read v:1=1 40000, v:1#1 40000                           | u:1 1 0 30000 0 | [0 40000 v:1]       | mode=read v:1=1 40000, v:1#1 40000
a plain lock                 | v:1=1 40000                                                  | u:1 1 0 30000 0    | [0 40000 v:1]       | same
wrong type                   | 'x'                                                          | u:1 1 0 30000 0 | -WRONGTYPE          | same
foreign                      | mode=read path=x                                             | u:1 1 0 30000 0 | -WRONGTYPE          | same
half foreign                 | mode=write path=7 v:1:write=1 30000                          | u:1 1 0 30000 0 | -WRONGTYPE          | same
another mode, to re-enter    | mode=dark u:1:write=1 30000                                  | u:1 2 0 40000 0 | -WRONGTYPE          | same
another mode, to read        | mode=dark u:1:write=1 30000                                  | u:1 0 1 40000 0 | -WRONGTYPE          | same
another mode, to write       | mode=dark u:1=1 30000, u:1#1 30000                           | u:1 1 0 40000 0 | -WRONGTYPE          | same
another mode, one less       | mode=dark u:1:write=2 30000                                  | u:1 1 0 40000 1 | -WRONGTYPE          | same
of another mode              | mode=fast v:1=1 30000                                        | u:1 1 0 30000 0 | -WRONGTYPE          | same
# giving back a part of the holds: without a hold, nothing is granted
free, of a writer              |                                                 | u:1 1 0 30000 1 | [-1 0 ]
others read                    | mode=read v:1=1 40000, v:1#1 40000              | u:1 0 1 30000 1 | [-1 0 ] | same
own                            | mode=read u:1=2 20000, u:1#1 20000, u:1#2 20000 | u:1 0 1 30000 1 | [1 0 ]  | mode=read u:1=1 30000, u:1#1 30000
own, of a writer that reads on | mode=write u:1:write=1 u:1=1 20000, u:1#1 20000 | u:1 0 1 30000 1 | [1 0 ]  | mode=read u:1=1 30000, u:1#1 30000 | rw1
# a reader that wants to write, too
the only reader, instead  | mode=read u:1=2 20000, u:1#1 20000, u:1#2 20000                  | u:1 1 0 30000 0    | [1 0 ]        | mode=write u:1:write=1 30000
one of two                | mode=read u:1=2 v:1=1 90000, u:1#1 20000, u:1#2 90000, v:1#1 40000 | u:1 1 2 30000 0 | [0 40000 v:1] | mode=read v:1=1 40000, v:1#1 40000
besides a dead one        | mode=read u:1=1 v:1=1 20000, u:1#1 20000                         | u:1 1 1 30000 0 | [1 0 ]        | mode=write u:1:write=1 u:1=1 30000, u:1#1 30000
# a reader
own, more                         | mode=read u:1=1 30000, u:1#1 30000                               | u:1 0 3 20000 0    | [1 0 ]              | mode=read u:1=3 20000, u:1#1 20000, u:1#2 20000, u:1#3 20000
own, less                         | mode=read u:1=3 30000, u:1#1 30000, u:1#2 30000, u:1#3 30000     | u:1 0 1 40000 0    | [1 0 ]              | mode=read u:1=1 40000, u:1#1 40000
own, among others                  | mode=read u:1=1 v:1=1 40000, u:1#1 20000, v:1#1 40000 | u:1 0 2 30000 0    | [1 0 ]              | mode=read u:1=2 v:1=1 40000, u:1#1 30000, u:1#2 30000, v:1#1 40000
joins for more                    | mode=read v:1=1 40000, v:1#1 40000                               | u:1 0 1 60000 0    | [1 0 ]              | mode=read u:1=1 v:1=1 60000, u:1#1 60000, v:1#1 40000
does not join to re-enter         | mode=read v:1=1 40000, v:1#1 40000                               | u:1 0 2 30000 0    | [0 40000 v:1]       | same
other writes                      | mode=write v:1:write=1 40000                                     | u:1 0 1 30000 0 | [0 40000 v:1:write] | same
downgrade of both                 | mode=write u:1:write=1 u:1=1 20000, u:1#1 20000                  | u:1 0 1 30000 0    | [1 0 ]              | mode=read u:1=1 30000, u:1#1 30000                               | rw1
a plain lock                      | v:1=1 40000                                                      | u:1 0 1 30000 0    | [0 40000 v:1]       | same
wrong type                        | 'x' 30000                                                        | u:1 0 1 30000 0    | -WRONGTYPE          | same
foreign, it could be read         | mode=read path=7 30000                                           | u:1 0 1 30000 0    | -WRONGTYPE         | same
half foreign, it could be read    | mode=read path=7 v:1=1 30000, v:1#1 30000                        | u:1 0 1 30000 0    | -WRONGTYPE         | same
# with a wait queue
free, another writer's turn       | >v=2.7.0.0.1@-3 ^@-1 >15000                                     | u:1 1 0 30000 0 1.4.0.0.1   | [0 20000 v:2:write] | mode=write v:2:write=1 20000, >u=1.4.0.0.1@0 ^@0 >20000 | v>2.7.0
free, a writer's turn, not to read | >v=2.7.0.0.1@-3 ^@-1 >15000                                    | u:1 0 1 30000 0 1.4.1.0.1   | [0 20000 v:2:write] | mode=write v:2:write=1 20000, >u=1.4.1.0.1@0 ^@0 >20000 | v>2.7.0
free, a reader's turn, to read too | >v=2.7.1.0.1@-3 ^@-1 >u=1.3.1.0.1@-2 ^@-1 >15000               | u:1 0 1 30000 0 1.4.1.0.1   | [1 0 ]        | mode=read u:1=1 v:2=1 30000, u:1#1 30000, v:2#1 20000 | v>2.7.0
free, a reader's turn, then a writer's | >v=2.7.1.0.1@-3 ^@-1 >w=8.8.0.0.1@-2 ^@-1 >15000           | u:1 0 1 30000 0 1.4.1.0.1   | [0 20000 v:2]  | mode=read v:2=1 20000, v:2#1 20000, >w=8.8.0.0.1@-2 ^@-1 >u=1.4.1.0.1@0 ^@0 >20000 | v>2.7.0
free, readers' turn, past one that has gone | >v=2.7.1.0.1@-4 ^@-1 >x=1.1.0.0.1@-3 ^@-1 >u=1.3.1.0.1@-2 ^@-1 >15000 | u:1 0 1 30000 0 | [1 0 ]    | mode=read u:1=1 v:2=1 30000, u:1#1 30000, v:2#1 20000 | v>2.7.0
free, readers' turn, to its own   | >v=2.7.1.0.1@-4 ^@-1 >u=1.3.0.0.1@-3 ^@-1 >w=8.8.1.0.1@-2 ^@-1 >15000 | u:1 1 0 30000 0 1.4.0.0.1 | [0 20000 v:2] | mode=read v:2=1 20000, v:2#1 20000, >u=1.4.0.0.1@-3 ^@0 >w=8.8.1.0.1@-2 ^@-1 >20000 | v>2.7.0
free, own turn to read            | >u=1.3.1.0.1@-3 ^@-1 >v=2.7.0.0.1@-2 ^@-1 >15000                | u:1 0 1 30000 0 1.4.1.0.1   | [1 0 ]        | mode=read u:1=1 30000, u:1#1 30000, >v=2.7.0.0.1@-2 ^@-1 >20000
free, left to others              | >open@3 >15000                                                  | u:1 0 1 30000 0 1.4.1.0.1   | [0 3000 ]     | >u=1.4.1.0.1@0 ^@0 >open@3 >20000
free, left to others, and released | >open@3 >15000                                                 | u:1 0 1 30000 0 1.4.1.0.1 1 | [1 0 ]        | mode=read u:1=1 30000, u:1#1 30000
readers, joined by a former writer     | mode=read w:1=1 40000, w:1#1 40000, >u=1.3.0.0.1@-3 ^@-1 >v=2.7.1.0.1@-2 ^@-1 >15000 | u:1 0 1 30000 0 1.4.1.0.1 | [1 0 ] | mode=read u:1=1 v:2=1 w:1=1 40000, u:1#1 30000, v:2#1 20000, w:1#1 40000 | v>2.7.0
free, read by a former writer     | >u=1.3.0.0.1@-3 ^@-1 >v=2.7.1.0.1@-2 ^@-1 >15000 | u:1 0 1 30000 0 1.4.1.0.1 | [1 0 ] | mode=read u:1=1 v:2=1 30000, u:1#1 30000, v:2#1 20000 | v>2.7.0
readers, a writer adds an entry   | mode=read w:1=1 40000, w:1#1 40000                                                             | u:1 1 0 30000 0 1.4.0.0.1   | [0 40000 w:1] | mode=read w:1=1 40000, w:1#1 40000, >u=1.4.0.0.1@0 ^@0 >20000
does not read past a queued writer  | mode=read w:1=1 40000, w:1#1 40000, >v=2.7.0.0.1@-3 ^@-1 >15000                              | u:1 0 1 30000 0 1.4.1.0.1   | [0 40000 w:1] | mode=read w:1=1 40000, w:1#1 40000, >v=2.7.0.0.1@-3 ^@-1 >u=1.4.1.0.1@0 ^@0 >20000
nor past one behind a reader      | mode=read x:1=1 40000, x:1#1 40000, >v=2.7.1.0.1@-4 ^@-1 >w=8.8.0.0.1@-3 ^@-1 >15000 | u:1 0 1 30000 0 | [0 40000 x:1] | same
does not read past a MultiLock    | mode=read w:1=1 40000, w:1#1 40000, >v=2.7.1.0.0.0@-3 ^@-1 >15000 | u:1 0 1 30000 0 1.4.1.0.1 | [0 40000 w:1] | mode=read w:1=1 40000, w:1#1 40000, >v=2.7.1.0.0.0@-3 ^@-1 >u=1.4.1.0.1@0 ^@0 >20000
reads before a queued writer      | mode=read w:1=1 40000, w:1#1 40000, >u=1.3.1.0.1@-4 ^@-1 >v=2.7.0.0.1@-3 ^@-1 >15000           | u:1 0 1 30000 0 1.4.1.0.1   | [1 0 ]        | mode=read u:1=1 w:1=1 40000, u:1#1 30000, w:1#1 40000, >v=2.7.0.0.1@-3 ^@-1 >20000
reads past a writer that has gone | mode=read w:1=1 40000, w:1#1 40000, >x=2.7.0.0.1@-3 ^@-1 >15000                                | u:1 0 1 30000 0 1.4.1.0.1   | [1 0 ]        | mode=read u:1=1 w:1=1 40000, u:1#1 30000, w:1#1 40000
reads together with readers before it | mode=read w:1=1 40000, w:1#1 40000, >v=2.7.1.0.1@-3 ^@-1 >open@3 >15000             | u:1 0 1 30000 0 1.4.1.0.1   | [1 0 ]        | mode=read u:1=1 v:2=1 w:1=1 40000, u:1#1 30000, v:2#1 20000, w:1#1 40000 | v>2.7.0
reads past a writer of the client | mode=read w:1=1 40000, w:1#1 40000, >u=2.7.0.0.1@-3 ^@-1 >15000                                | u:1 0 1 30000 0 1.4.1.0.1   | [1 0 ]        | mode=read u:1=1 w:1=1 40000, u:1#1 30000, w:1#1 40000, >u=2.7.0.0.1@-3 ^@-1 >15000
the only reader writes past a queue | mode=read u:1=1 40000, u:1#1 40000, >v=2.7.0.0.1@-3 ^@-1 >15000 | u:1 1 0 30000 0 1.4.0.0.1  | [1 0 ]        | mode=write u:1:write=1 30000, >v=2.7.0.0.1@-3 ^@-1 >15000
one of two readers wants to write | mode=read u:1=1 w:1=1 40000, u:1#1 40000, w:1#1 40000           | u:1 1 0 30000 0 1.4.0.0.1   | [0 40000 w:1] | mode=read w:1=1 40000, w:1#1 40000, >u=1.4.0.0.1@0 ^@0 >20000
downgrade, for readers before a writer | mode=write u:1:write=1 u:1=1 30000, u:1#1 30000, >v=2.7.1.0.1@-4 ^@-1 >w=8.8.0.0.1@-3 ^@-1 >15000 | u:1 0 1 40000 1  | [1 0 ]        | mode=read u:1=1 v:2=1 40000, u:1#1 40000, v:2#1 20000, >w=8.8.0.0.1@-3 ^@-1 >20000 | rw1 v>2.7.0
downgrade, for a writer           | mode=write u:1:write=1 30000, >w=8.8.0.0.1@-3 ^@-1 >15000       | u:1 0 1 40000 0             | [1 0 ]        | mode=read u:1=1 40000, u:1#1 40000, >w=8.8.0.0.1@-3 ^@-1 >15000 | rw1

read_write_release: NAME / ARG HOLDS RWCHANNEL WAITQUEUE SETTINGS
a writer that reads             | mode=write u:1:write=1 u:1=2 30000, u:1#1 30000, u:1#2 30000     | u:1 | 0 then -1  |                                                                  | rw1
the last reader                 | mode=read u:1=2 30000, u:1#1 30000, u:1#2 20000                  | u:1 | 0 then -1  |                                                                  | rw0
a reader with the longest lease | mode=read u:1=1 v:1=2 w:1=1 90000, u:1#1 90000, v:1#1 20000, v:1#2 40000, w:1#1 30000 | u:1 | 0 then -1  | mode=read v:1=2 w:1=1 40000, v:1#1 20000, v:1#2 40000, w:1#1 30000
the last reader alive           | mode=read u:1=1 v:1=2 40000, u:1#1 20000                         | u:1 | 0 then -1  |                                                                  | rw0
free                            |                                                                  | u:1 | -1
wrong type                      | 'x'                                                              | u:1 | -WRONGTYPE | same
half foreign, it stays          | mode=read path=7 u:1=1 30000, u:1#1 30000                        | u:1 | 0 then -1  | mode=read path=7
half foreign, others read       | mode=read path=7 u:1=1 v:1=1 30000, u:1#1 30000, v:1#1 30000     | u:1 | 0 then -1  | mode=read path=7 v:1=1 30000, v:1#1 30000
another mode, it stays          | mode=dark u:1:write=1 30000                                      | u:1 | 0 then -1  | mode=dark
another mode, of a reader       | mode=dark u:1=1 30000, u:1#1 30000                               | u:1 | 0 then -1  | mode=dark
# with a wait queue
the next writes                 | mode=read u:1=1 30000, u:1#1 30000, >v=2.7.0.0.1@-4 ^@-1 >w=8.8.1.0.1@-3 ^@-1 >15000 | u:1   | 0 then -1 | mode=write v:2:write=1 20000, >w=8.8.1.0.1@-3 ^@-1 >20000 | v>2.7.0
the next read                   | mode=write u:1:write=1 30000, >v=2.7.1.0.1@-4 ^@-1 >w=8.8.1.0.1@-3 ^@-1 >15000       | u:1   | 0 then -1 | mode=read v:2=1 w:8=1 20000, v:2#1 20000, w:8#1 20000 | v>2.7.0 w>8.8.0
others still read               | mode=read u:1=1 w:1=1 40000, u:1#1 40000, w:1#1 40000, >v=2.7.0.0.1@-4 ^@-1 >15000   | u:1   | 0 then -1 | mode=read w:1=1 40000, w:1#1 40000, >v=2.7.0.0.1@-4 ^@-1 >15000
none listens                    | mode=write u:1:write=1 30000, >v=2.7.1.0.0@-4 ^@-1 >15000                            | u:1   | 0 then -1 | >v=2.7.1.0.0@-4 ^@-1 >15000 | rw1
a MultiLock withdraws           | >v=2.7.0.0.0.k-1@-3 ^@-1 >w=8.8.1.0.1@-2 ^@-1 >u=9.9.1.0.1@-1 ^@-1 >15000          | v:2   | -1        | mode=read u:9=1 w:8=1 20000, u:9#1 20000, w:8#1 20000 | u>9.9.0 w>8.8.0
a MultiLock withdraws beside readers | mode=read u:1=1 30000, u:1#1 30000, >v=2.7.0.0.0.0@-3 ^@-1 >w=8.8.1.0.1@-2 ^@-1 >15000 | v:2 | -1   | mode=read u:1=1 w:8=1 30000, u:1#1 30000, w:8#1 20000 | w>8.8.0
a foreign client's turn         | mode=write u:1:write=1 30000, >v=2.7.1.0.1@-4 ^@-1 >turns=1 >15000 <2-1                | u:1   | 0 then -1 | >v=2.7.1.0.1@-4 ^@-1 >open@5 >20000 | rw1
a writer leaves the queue       | mode=read w:1=1 40000, w:1#1 40000, >u=1.4.0.0.1@-4 ^@-1 >v=2.7.1.0.1@-3 ^@-1 >15000                                | u:1   | -1        | mode=read v:2=1 w:1=1 40000, v:2#1 20000, w:1#1 40000 | v>2.7.0
it leaves the queue of a writer | mode=write w:1:write=1 40000, >u=1.4.0.0.1@-4 ^@-1 >v=2.7.1.0.1@-3 ^@-1 >15000       | u:1   | -1        | mode=write w:1:write=1 40000, >v=2.7.1.0.1@-3 ^@-1 >20000
a late one                      | mode=read w:1=1 40000, w:1#1 40000, >u=2.4.0.0.1@-4 ^@-1 >v=2.7.1.0.1@-3 ^@-1 >15000                                | u:1   | -1        | same
a queue of another type         | mode=write u:1:write=1 30000, waitqueue 'x' 30000                                         | u:1   | 0 then -1 | waitqueue 'x' 30000 | rw1

read_write_renew: NAME / ARGS HOLDS
read twice, a lease is gone | mode=read u:1=2 30000, u:1#2 5000                     | u:1 60000 | [1]  | mode=read u:1=2 60000, u:1#1 60000, u:1#2 60000
read among longer leases    | mode=read u:1=1 v:1=1 90000, u:1#1 30000, v:1#1 90000 | u:1 60000 | [1]  | mode=read u:1=1 v:1=1 90000, u:1#1 60000, v:1#1 90000
written and read            | mode=write u:1:write=2 u:1=1 30000, u:1#1 30000       | u:1 60000 | [1]  | mode=write u:1:write=2 u:1=1 60000, u:1#1 60000
without an end              | mode=write u:1:write=2                                | u:1 60000 | [1]  | mode=write u:1:write=2 60000
gone                        |                                                       | u:1 60000 | [0]
other                       | mode=read v:1=1 30000, v:1#1 30000                    | u:1 60000 | [-1] | same
wrong type                  | 'x' 30000                                             | u:1 60000 | [-1] | same
read, behind the bad ones   | mode=read u:1=1 30000, u:1#1 30000                    | u:1 60000 | [1]  | mode=read u:1=1 60000, u:1#1 60000

read_write_yield: NAME / ARG ARG ARG HOLDS RWCHANNEL WAITQUEUE SETTINGS OR-
only itself waits                       | mode=read u:1=2 20000, u:1#1 20000, u:1#2 20000 <1-1            | u:1 30000 0 | [0 0]             | mode=read u:1=1 30000, u:1#1 30000
not yet itself                          | mode=read u:1=2 20000, u:1#1 20000, u:1#2 20000               | u:1 30000 0 | [0 0]             | mode=read u:1=1 30000, u:1#1 30000
both                                    | mode=write u:1:write=1 u:1=1 20000, u:1#1 20000               | u:1 30000 0 | [0 0]             | mode=write u:1:write=1 30000
among longer readers                    | mode=read u:1=1 v:1=1 40000, u:1#1 20000, v:1#1 40000         | u:1 30000 0 | [0 0]             | mode=read u:1=1 v:1=1 40000, u:1#1 30000, v:1#1 40000
others wait                             | mode=read u:1=2 20000, u:1#1 20000, u:1#2 20000 <3            | u:1 30000 0 | [1 1] then [-1 0] | >open@5 >6000 | rw0
others wait, others read                | mode=read u:1=1 v:1=1 90000, u:1#1 90000, v:1#1 40000 <1      | u:1 30000 0 | [1 0] then [-1 0] | mode=read v:1=1 40000, v:1#1 40000
other                                   | mode=write v:1:write=1 40000 <1                               | u:1 30000 1 | [-1 0]            | same
wrong type                              | 'x'                                                           | u:1 30000 1 | -WRONGTYPE        | same
# with a wait queue or an entry
none, for an entry       | mode=read u:1=1 20000, u:1#1 20000                                                         | u:1 30000 0 2.7.1.0.1 | [0 0]             | mode=read u:1=1 30000, u:1#1 30000
to readers               | mode=write u:1:write=1 20000, >v=2.7.1.0.1@-4 ^@-1 >w=8.8.1.0.1@-3 ^@-1 >15000             | u:1 30000 0 2.7.0.0.1 | [1 0] then [-1 0] | mode=read v:2=1 w:8=1 20000, v:2#1 20000, w:8#1 20000, >u=2.7.0.0.1@0 ^@0 >20000 | v>2.7.0 w>8.8.0
among readers            | mode=read u:1=1 w:1=1 40000, u:1#1 40000, w:1#1 40000, >v=2.7.0.0.1@-4 ^@-1 >15000         | u:1 30000 0 2.7.1.0.1 | [1 0] then [-1 0] | mode=read w:1=1 40000, w:1#1 40000, >v=2.7.0.0.1@-4 ^@-1 >u=2.7.1.0.1@0 ^@0 >20000
to a foreign client      | mode=write u:1:write=1 20000 <1                                                            | u:1 30000 0 2.7.0.0.1 | [1 1] then [-1 0] | >u=2.7.0.0.1@0 ^@0 >open@5 >20000 | rw1

read_write_force_release: NAME / HOLDS ARG RWCHANNEL ARGS
readers                   | mode=read u:1=2 v:1=1 40000, u:1#1 20000, u:1#2 30000, v:1#1 40000 | read u:1 v:1  | 1 then 0   |           | rw0
a writer                  | mode=write v:1:write=2 v:1=1 40000, v:1#1 40000                  | write v:1 | 1 then 0   |           | rw1
readers, as a writer      | mode=read u:1=2 v:1=1 40000, u:1#1 20000, u:1#2 30000, v:1#1 40000 | write u:1 v:1 | 0      | same
a writer, as readers      | mode=write v:1:write=2 v:1=1 40000, v:1#1 40000                  | read v:1 | 0          | same
one of the readers        | mode=read u:1=2 v:1=1 40000, u:1#1 20000, u:1#2 40000, v:1#1 30000 | read u:1 w:1 | 1 then 0 | mode=read v:1=1 30000, v:1#1 30000
another writer since      | mode=write w:1:write=1 40000                                     | write v:1 | 0         | same
another reader since      | mode=read w:1=1 40000, w:1#1 40000                               | read u:1 v:1 | 0      | same
none is named             | mode=read w:1=1 40000, w:1#1 40000                               | read  | 0             | same
a plain lock              | v:1=1 40000                                                      | read v:1 | 1 then 0   |           | rw0
a plain lock, as a writer | v:1=2 40000                                                      | write v:1 | 1 then 0  |           | rw1
a plain lock of another   | w:1=1 40000                                                      | write v:1 | 0         | same
wrong type                | 'x'                                                              | read v:1 | -WRONGTYPE | same
foreign                   | mode=read path=7                                                 | read v:1 | -WRONGTYPE | same
half foreign              | mode=write path=7 v:1:write=1 30000                              | write v:1 | -WRONGTYPE | same

read_write_inspect: NAME / RWCHANNEL
read             | mode=read u:1=2 40000 <2     |  | [40000 2 1 u:1 2]    | same
written          | mode=write u:1:write=3       |  | [-1 0 1 u:1:write 3] | same
written and read | mode=write u:1:write=3 u:1=2 |  | [-1 0 2 u:1:write u:1 3] | same
read and written | u:1=2 u:1:write=3 mode=write |  | [-1 0 2 u:1:write u:1 3] | mode=write u:1:write=3 u:1=2
many             | mode=read u:1=7 u:2=7 u:3=7  |  | [-1 0 3 u:1 u:2 u:3 7] | same
free             | <1                           |  | [-2 1 0  ]
wrong type       | 'x' 30000                    |  | -WRONGTYPE           | same
foreign          | mode=read path=7             |  | -WRONGTYPE           | same
half foreign     | mode=read path=7 u:1=1       |  | -WRONGTYPE           | same

count_waiters: NAME / ARGS RWCHANNEL WAITQUEUE SETTINGS
not yet itself          |              | u | [0]
in the queue            | >x=1.1.0.0.1@-5 ^@-1 >v=1.1.1.0.1@-4 ^@-1 >u=1.1.1.0.1@-3 ^@-1 >w=1.1.1.0.0@-2 ^@-1 >15000 | u | [2] | >v=1.1.1.0.1@-4 ^@-1 >u=1.1.1.0.1@-3 ^@-1 >w=1.1.1.0.0@-2 ^@-1 >20000
dead in the queue       | >v=1.1.0.0.1@-30 ^@-20 >15000                                 | u | [0] |
in the queue, and a foreign client | >v=1.1.0.0.1@-2 ^@-1 >w=1.1.0.0.0@-2 ^@-1 >15000 <3-2           | u | [3] | same
`
