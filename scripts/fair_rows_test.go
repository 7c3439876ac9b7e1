package scripts_test

const fairRows = `
sync_queue: NAME / ARG ARG ARG ARG 300000 QUEUE TIMEOUTS CHANNEL ARGS
# joining the queue
as Redisson does, behind a holder         | v:1=1 30000                  | u - 1 9 u:1 30000 1 u:2 30000 1 u:3 30000 1 | [0 30000 v:1 ] | v:1=1 30000 /u:1@330 u:2@630 u:3@930 then v:1=1 30000 /u:1@300 u:2@600 u:3@900
behind a holder without end               | v:1=1                        | u - 1 9 u:1 30000 1                         | [0 -1 v:1 ]    | v:1=1 /u:1@300!
behind a foreign client                   | v:1=1 30000 /v:2@100         | u - 1 9 u:1 30000 1                         | [0 30000 v:1 ] | v:1=1 30000 /v:2@100 u:1@400
behind the latest of all                  | v:1=1 30000 /v:2@500 v:3@100 | u - 1 9 u:1 30000 1                         | [0 30000 v:1 ] | v:1=1 30000 /v:2@500 v:3@100 u:1@800
behind a dead one, but not the first      | v:1=1 30000 /v:2@10 w:3@-50  | u - 1 9 u:1 30000 1                         | [0 30000 v:1 ] | v:1=1 30000 /v:2@10 w:3@-50 u:1@310
not one that tries once                   | v:1=1 30000                  | u - 1 9 u:1 30000 0                         | [0 30000 v:1 ] | same
a free lock that may not be taken         |                              | u - 0 9 u:1 30000 1                         | [0 0  ]        | /u:1@300!
behind a hold of its client               | u:5=1 30000                  | u - u:5 9 u:1 30000 1                       | [0 30000 u:5 ] | u:5=1 30000 /u:1@330 then u:5=1 30000 /u:1@300
not behind one that was released since    | v:1=1 30000 /u:2@330         | u - u:5 9 u:1 30000 1 u:2 30000 1           | [0 30000 v:1 ] | v:1=1 30000 /u:2@300
not behind one of the same client         | u:6=1 30000                  | u - u:5 9 u:1 30000 1                       | [0 30000 u:6 ] | same
not a free lock, after the release        |                              | u - u:5 9 u:1 30000 1                       | [0 0  ]        | same
# confirming
in a chain                                   | v:1=1 30000 /u:1@7 u:2@8 u:3@2000              | u - 1 9 u:1 30000 1 u:2 30000 1 u:3 30000 1 | [0 30000 v:1 ] | v:1=1 30000 /u:1@300 u:2@600 u:3@900
each of those listed, in the order of the queue | v:1=1 30000 /u:2@7 u:1@8                       | u - 1 9 u:1 30000 1 u:2 30000 1             | [0 30000 v:1 ] | v:1=1 30000 /u:2@300 u:1@600
around foreign clients                       | v:1=1 30000 /u:1@7 v:2@450 v:3@100 u:2@8 v:4@9 | u - 1 9 u:1 30000 1 u:2 30000 1             | [0 30000 v:1 ] | v:1=1 30000 /u:1@300 v:2@450 v:3@100 u:2@750 v:4@9
one that seemed dead                         | v:1=1 30000 /u:1@-100 v:2@200                  | u - 1 9 u:1 30000 1                         | [0 30000 v:1 ] | v:1=1 30000 /u:1@300 v:2@200
one without a timeout                        | v:1=1 30000 /u:1 v:2@200                       | u - 1 9 u:1 30000 1                         | [0 30000 v:1 ] | v:1=1 30000 /u:1@300 v:2@200
not one that is not listed                   | v:1=1 30000 /u:5@70 u:1@100                    | u - 1 4 u:1 30000 1                         | [0 30000 v:1 ] | v:1=1 30000 /u:5@70 u:1@370
# leaving
those behind move up                     | v:1=1 30000 /v:2@330 u:1@630 v:3@930 v:4@1230          | u - 1 9             | [0 30000 v:1 ] | v:1=1 30000 /v:2@330! v:3@630! v:4@930!
those behind move up alike               | v:1=1 30000 /u:1@330 v:2@630 v:3@2000 v:4@2100         | u - 1 9             | [0 30000 v:1 ] | v:1=1 30000 /v:2@330 v:3@1700 v:4@1800
two at two points                        | v:1=1 30000 /u:1@330 v:2@630 u:2@930 v:3@1230          | u - 1 9             | [0 30000 v:1 ] | v:1=1 30000 /v:2@330 v:3@630
no other is dead for it                  | v:1=1 30000 /u:1@300 v:2@40 v:3@340                    | u - 1 9             | [0 30000 v:1 ] | v:1=1 30000 /v:2@40! v:3@340!
none loses the time of those before      | v:1=1 30000 /v:2@330 u:1@630 v:3@640 v:4@940           | u - 1 9             | [0 30000 v:1 ] | v:1=1 30000 /v:2@330 v:3@630 v:4@930
past one without a timeout               | v:1=1 30000 /v:2@330 u:1@630 v:3 v:4@1230              | u - 1 9             | [0 30000 v:1 ] | v:1=1 30000 /v:2@330 v:3 v:4@930
not those listed                         | v:1=1 30000 /u:1@330 u:2@630 u:3@930                   | u - 1 9 u:2 30000 1 | [0 30000 v:1 ] | v:1=1 30000 /u:2@300
not later ones                           | v:1=1 30000 /u:9@330 u:10@630                          | u - 1 9             | [0 30000 v:1 ] | v:1=1 30000 /u:10@330
not those of others                      | v:1=1 30000 /v:1@330 w:1@630                           | u - 1 9             | [0 30000 v:1 ] | same
the first waiter of a free lock          | /u:1@330 v:2@630 <v:2                                  | u - 0 9             | [0 330000  ]   | /v:2@330                               | v:2
the only waiter of a free lock           | /u:1@330                                               | u - 0 9             | [0 0  ]        |                                        | 0
the first waiter, and the next is listed | /u:1@330 u:2@630                                       | u - 0 9 u:2 30000 1 | [0 0  ]        | /u:2@300
# dead waiters: the timeouts of those behind count from those before
first of a free lock                         | /v:2@-1 w:3@299                                   | u - 1 9             | [0 299000  ]   | /w:3@299                     | w:3
first of a free lock, since now              | /v:2@0 w:3@299                                    | u - 1 9             | [0 299000  ]   | /w:3@299                     | w:3
without a timeout                            | /v:2 w:3@299                                      | u - 1 9             | [0 299000  ]   | /w:3@299                     | w:3
several                                      | /v:2@-1 w:3 x:4@-5 y:5@40                         | u - 1 9             | [0 40000  ]    | /y:5@40                      | y:5
all                                          | /v:2@-1 w:3                                       | u - 1 9             | [0 0  ]        |                              | 0
before one that is listed                    | /v:2@-1 u:1@5                                     | u - 0 9 u:1 30000 1 | [0 0  ]        | /u:1@300
without a listener: its whole timeout    | /v:2@360 w:3@660 v:4@960                          | u - 1 9             | [0 300000  ]   | /v:2@300 w:3@600 v:4@900
without a listener, while the lock is held   | w:9=1 60000 /v:2@360 w:3@660                      | u - 1 9             | [0 60000 w:9 ] | same
a client with many                           | /v:2@-1 v:3@299 v:4@599 w:5@899 x:6@1199          | u - 1 9             | [0 300000  ]   | /w:5@300 x:6@600             | w:5
a client with many, here and there           | /v:2@-1 w:3@299 v:4@599 w:5@899 v:6@1199 x:7@1499 | u - 1 9             | [0 299000  ]   | /w:3@299 w:5@599 x:7@899     | w:3
not one that listens                         | /v:2@-1 v:3@299 v:4@599 <v:3                      | u - 1 9             | [0 299000  ]   | /v:3@299                     | v:3
not one that listens, without a timeout      | /v:2 w:3@299 <v:2                                 | u - 1 9             | [0 299000  ]   | /w:3@299                     | w:3
# taking the lock
a free lock                                  |                                   | u - 1 9 u:1 40000 1                         | [1 0 u:1 ]   | u:1=1 40000
by the first in the queue                    | /u:1@330 v:2@630 u:3@930 v:4@1230 | u - 1 9 u:1 40000 1 u:3 30000 1             | [1 0 u:1 ]   | u:1=1 40000 /v:2@330 u:3@630 v:4@930
no other is dead for it                      | /u:1@300 v:2@40 v:3@340           | u - 1 9 u:1 40000 1                         | [1 0 u:1 ]   | u:1=1 40000 /v:2@40 v:3@340
by the first in the queue, not the first listed | /u:2@330 u:1@630                  | u - 1 9 u:1 30000 1 u:2 40000 1             | [1 0 u:2 ]   | u:2=1 40000 /u:1@300
behind the dead                              | /v:2@-1 u:1@299 w:3@599           | u - 1 9 u:1 40000 1                         | [1 0 u:1 ]   | u:1=1 40000 /w:3@300
behind those that leave                      | /u:1@330 u:2@630 v:3@930          | u - 1 9 u:2 40000 1                         | [1 0 u:2 ]   | u:2=1 40000 /v:3@330
not behind a foreign client                  | /v:2@100 u:1@400                  | u - 1 9 u:1 40000 1                         | [0 100000  ] | same
by one that tries once, behind the dead      | /v:2@-1 w:3                       | u - 1 9 u:1 40000 0                         | [1 0 u:1 ]   | u:1=1 40000
not by one that tries once, past a queue     | /v:2@100                          | u - 1 9 u:1 40000 0                         | [0 100000  ] | same
by one that waits, not one that tries        |                                   | u - 1 9 u:1 30000 0 u:2 40000 1             | [1 0 u:2 ]   | u:2=1 40000
by one of two that try                       |                                   | u - 1 9 u:2 30000 0 u:1 40000 0             | [1 0 u:2 ]   | u:2=1 30000
# an owner that holds the lock already missed a reply
under a shorter lease  | u:1=1 10000                  | u - 1 9 u:1 40000 1                         | [1 0 u:1 ] | u:1=1 40000
without an end         | u:1=1                        | u - 1 9 u:1 40000 1                         | [1 0 u:1 ] | u:1=1 40000
more than once         | u:1=3 10000                  | u - 1 9 u:1 40000 1                         | [1 0 u:1 ] | u:1=3 40000
by a try               | u:1=1 10000                  | u - 0 9 u:1 40000 0                         | [1 0 u:1 ] | u:1=1 40000
while others wait      | u:2=1 10000 /u:1@100 v:2@400 | u - 1 9 u:1 30000 1 u:2 40000 1 u:3 30000 1 | [1 0 u:2 ] | u:2=1 40000 /u:1@300 v:2@400 u:3@700
and still in the queue | u:1=1 10000 /u:1@100 v:2@400 | u - 1 9 u:1 40000 1                         | [1 0 u:1 ] | u:1=1 40000 /v:2@300
# ending a hold
to a foreign client                 | u:1=2 30000 /v:2@330 v:3@630 <v:2 | u u:1 0 9             | [0 330000  1] then [0 330000  0] | /v:2@330 v:3@630     | v:2
to a foreign client behind the dead | u:1=1 30000 /v:2@-1 w:3@299       | u u:1 0 9             | [0 299000  1] then [0 299000  0] | /w:3@299             | w:3
to a foreign client, and wait again | u:1=1 30000 /v:2@330 <v:2         | u u:1 1 9 u:2 30000 1 | [0 330000  1] then [0 330000  0] | /v:2@330 u:2@630     | v:2
to an own waiter, at once           | u:1=1 30000 /u:2@330 v:3@630      | u u:1 1 9 u:2 40000 1 | [1 0 u:2 1] then [1 0 u:2 0] | u:2=1 40000 /v:3@330
to an own waiter, later             | u:1=1 30000 /u:2@330              | u u:1 0 9 u:2 40000 1 | [0 0  1] then [0 0  0]       | /u:2@300
to an own waiter that is not listed | u:1=1 30000 /u:20@330             | u u:1 0 0             | [0 330000  1] then [0 330000  0] | /u:20@330            | u:20
to an empty queue                   | u:1=1 30000                       | u u:1 0 9             | [0 0  1] then [0 0  0]       |                      | 0
held by a foreign client            | v:1=1 30000 /v:2@330              | u u:1 1 9             | [0 30000 v:1 0]              | same
not held                            | /v:2@330 <v:2                     | u u:1 1 9             | [0 330000  0]                | same
# nothing, and wrong types
foreign                                  | email=7                     | u - 1 9 u:1 30000 1     | -WRONGTYPE | same
half foreign                             | email=7 v:1=1 30000         | u - 1 9 u:1 30000 1     | -WRONGTYPE | same
half foreign, own                        | email=7 u:1=1 30000         | u - 1 9 u:1 30000 1     | -WRONGTYPE | same
half foreign, left                       | email=7 v:1=1 30000 /u:1@330 v:2@630 | u - 1 9         | [0 1  ] | email=7 v:1=1 30000 /v:2@330
foreign, left                            | email=7 /u:1@330 v:2@630    | u - 1 9                 | [0 1  ] | email=7 /v:2@330
half foreign, released                   | email=7 u:1=1 30000         | u u:1 0 9               | [0 1  1] then [0 1  0] | email=7
a writer                                 | mode=write v:1:write=1 30000 | u - 1 9 u:1 30000 0    | [0 30000 v:1:write ] | same
a reader                                 | mode=read v:1=1 30000       | u - 1 9 u:1 30000 0     | [0 30000 v:1 ] | same
a reader of its own                      | mode=read u:1=1 30000       | u - 1 9 u:1 40000 0     | [0 30000 u:1 ] | same
a foreign queue                          | /some:7@-1                  | u - 1 9 u:1 30000 1     | -WRONGTYPE | same
a foreign queue, released                | u:1=1 30000 /some:7@-1      | u u:1 1 9 u:2 30000 1   | [0 1  1] then [0 1  0] | /some:7@-1
a lock of another type             | 'x' /u:1@5 v:2@-5 | u - 1 9 u:2 30000 1 | -WRONGTYPE | same
a lock of another type, to release | 'x' /u:1@5        | u u:3 1 9           | -WRONGTYPE | same
# when the queue ends, if all its clients have died
ends ten minutes after the last waiter counts as dead | v:1=1 30000                                  | u - 1 9 u:1 30000 1   | [0 30000 v:1 ] | v:1=1 30000 /u:1@330 ~930000 then v:1=1 30000 /u:1@300 ~900000
a longer one                                 | v:1=1 30000 /v:2@100 v:3@200                 | u - 1 9 u:1 30000 1   | [0 30000 v:1 ] | v:1=1 30000 /v:2@100 v:3@200 u:1@500 ~1100000
nothing else changes                         | v:1=1 30000 /v:2@100                         | u - 1 9               | [0 30000 v:1 ] | v:1=1 30000 /v:2@100 ~700000
those that are left                          | /u:1@300 v:2@600                             | u - 1 9 u:1 30000 1   | [1 0 u:1 ]     | u:1=1 30000 /v:2@300 ~900000
of a waiter that lives for ever              | v:1=1 30000 /v:2@1000000000000               | u - 1 9               | [0 30000 v:1 ] | v:1=1 30000 /v:2@1000000000000 ~31536600000
a short end, and stray timeouts              | /v:2@100 +u:1@50 +u:2@50 +v:3@50 ~60000 <v:2 | u - 1 9 u:2 30000 1   | [0 100000  ]   | /v:2@100 u:2@400 ~1000000
a queue of another type                      | /queue 'x'                                   | u - 1 9 u:2 30000 1   | -WRONGTYPE     | same
timeouts of another type                     | /timeouts 'x'                                | u - 1 9 u:2 30000 1   | -WRONGTYPE     | same
a queue of another type, to release          | u:1=1 30000 /queue 'x'                       | u u:1 1 9 u:2 30000 1 | [0 1  1] then [0 1  0] | /queue 'x'
timeouts of another type, to release         | u:1=1 30000 /timeouts 'x'                    | u u:1 1 9 u:2 30000 1 | [0 1  1] then [0 1  0] | /timeouts 'x'

fair_force_release: NAME / QUEUE TIMEOUTS CHANNEL ARGS
held                  | v:1=2 30000 /v:2@330 w:3@630    | v:1 | 1 then 0   | /v:2@330 w:3@630 | v:2
held, and none waits   | v:1=2 30000                    | v:1 | 1 then 0   |                  | 0
all are dead          | v:1=1 30000 /v:2@-1             | v:1 | 1 then 0   |                  | 0
held by another since | v:1=2 30000 /v:2@330 w:3@630    | u:1 | 0          | same
by another term since | v:2=1 30000 /w:3@630            | v:1 | 0          | same
none is named         | v:1=2 30000 /v:2@330            |     | 0          | same
the dead wait         | v:1=1 30000 /v:2@-1 w:3 x:4@300 | v:1 | 1 then 0   | /x:4@300         | x:4
one is dead since now | v:1=1 30000 /v:2@0 x:4@300      | v:1 | 1 then 0   | /x:4@300         | x:4
free                  | /v:2@330                        | v:1 | 0          | same
free, behind the dead | /v:2@-1 w:3@330                 | v:1 | 0          | /w:3@330         | w:3
a read/write lock     | mode=read u:1=1 30000           | u:1 | 1 then 0   |                  | 0
a writer              | mode=write u:1:write=1 30000    | u:1 | 1 then 0   |                  | 0
of two readers, one   | mode=read u:1=1 v:1=1 30000     | u:1 | 1 then 0   | mode=read v:1=1 30000 | 0
wrong type            | 'x' /v:2@-1                     | v:1 | -WRONGTYPE | same
foreign               | email=7 /v:2@-1                 | v:1 | -WRONGTYPE | same
a foreign queue       | v:1=1 30000 /some:7@-1          | v:1 | -WRONGTYPE | same

fair_inspect: NAME / QUEUE
held           | v:1=2 30000 /v:2@330 w:3@630 |  | [30000 2 v:1 2] | same
without an end | v:1=1                        |  | [-1 0 v:1 1]    | same
free           | /v:2@-1                      |  | [-2 1  ]        | same
foreign queue  | /some:7@-1                   |  | -WRONGTYPE      | same
wrong type     | 'x'                          |  | -WRONGTYPE      | same
foreign        | email=7                      |  | -WRONGTYPE      | same
half foreign   | email=7 v:1=1                |  | -WRONGTYPE      | same
`
