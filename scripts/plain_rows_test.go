package scripts_test

const plainRows = `
acquire: NAME / ARGS
free                  |              | a 1 30000 | (nil)      | a=1 30000
free, to re-enter     |              | a 2 30000 | [-2 ]
own, one more         | a=1 30000    | a 2 60000 | (nil)      | a=2 60000
own, without a TTL    | a=1          | a 1 30000 | (nil)      | a=1 30000
other                 | b=2 60000    | a 1 30000 | [60000 b]  | same
other, without a TTL  | b=2          | a 1 30000 | [-1 b]     | same
wrong type            | 'x'          | a 1 30000 | -WRONGTYPE | same

release: NAME / ARGS CHANNEL
own, wholly at once         | a=3 30000    | a 0 60000 | 0 then -1  |           | 0
own, without a TTL          | a=1          | a 0 60000 | 0 then -1  |           | 0
own, one less without a TTL | a=3          | a 2 60000 | 2          | a=2 60000
other, one less             | b=1 30000    | a 1 60000 | -1         | same
free                        |              | a 0 60000 | -1
wrong type                  | 'x'          | a 0 60000 | -WRONGTYPE | same
wrong type, one less        | 'x' 30000    | a 1 60000 | -WRONGTYPE | same

renew: NAME / ARGS
own                      | a=1 30000 | a 60000 | [1]  | a=1 60000
own, without a TTL       | a=1       | a 60000 | [1]  | a=1 60000
gone                     |           | a 60000 | [0]
other                    | b=1 30000 | a 60000 | [-1] | same
wrong type               | 'x' 30000 | a 60000 | [-1] | same
own, behind the bad ones | a=1 30000 | a 60000 | [1]  | a=1 60000

yield: NAME / ARGS CHANNEL
only the owner                       | a=1 30000 <1 | a 1 60000 0 | [0 0]             | a=1 60000
the owner not yet                    | a=1 30000    | a 1 60000 0 | [0 0]             | a=1 60000
without a TTL                        | a=1          | a 0 60000 0 | [0 0]             | a=1 60000
others                               | a=1 30000 <2 | a 0 60000 0 | [1 2] then [-1 0] |           | 0
opened for nobody                    | a=1 30000    | a 0 60000 1 | [1 0] then [-1 0] |           | 0
other                                | b=1 30000 <2 | a 0 60000 1 | [-1 0]            | same
wrong type                           | 'x' 30000 <2 | a 0 60000 1 | -WRONGTYPE        | same

force_release: NAME / CHANNEL
held without a TTL | a=1       |  | 1 then 0   |      | 0
free               |           |  | 0
wrong type         | 'x' 30000 |  | -WRONGTYPE | same

inspect: NAME / CHANNEL
held                | a=2 30000    |  | [30000 0 a 2] | same
held without a TTL  | a=1          |  | [-1 0 a 1]    | same
waited for          | a=1 30000 <2 |  | [30000 2 a 1] | same
free                |              |  | [-2 0  ]
wrong type          | 'x' 30000    |  | -WRONGTYPE    | same

fenced_acquire: NAME / ARGS TOKENS
free                              |                      | a 1 30000 1  | [1 1 ] then [1 2 ]   | a=1 30000 /'1' then a=1 30000 /'2'
free, many tokens                 | /'7'                 | a 1 30000 10 | [1 17 ] then [1 27 ] | a=1 30000 /'17' then a=1 30000 /'27'
free, to re-enter                 | /'7'                 | a 2 30000 1  | [-1 0 ]              | same
own, once more                    | a=1 30000 /'7'       | a 2 60000 0  | [1 0 ]               | a=2 60000 /'7'
other, without end                | b=2 /'7'             | a 1 30000 1  | [0 -1 b]             | same
other, the counter would end      | b=2 /'7' 60000       | a 1 30000 1  | [0 -1 b]             | same
the counter would end             | /'7' 60000           | a 1 30000 1  | [1 8 ] then [1 9 ]   | a=1 30000 /'8' then a=1 30000 /'9'
re-entered, the counter would end | a=1 30000 /'7' 60000 | a 2 30000 0  | [1 0 ]               | a=2 30000 /'7'
wrong type                        | 'x' /'7'             | a 1 30000 1  | -WRONGTYPE           | same
counter of another type           | /a=1                 | a 1 30000 1  | -WRONGTYPE           | same
counter that does not count       | /'x'                 | a 1 30000 1  | -                    | same

draw: TOKENS / ARGS
reserves                 | /'7'       | 3 | [1 10 ] then [1 13 ] | /'10' then /'13'
a counter that would end | /'7' 60000 | 3 | [1 10 ] then [1 13 ] | /'10' then /'13'
none yet                 |            | 3 | [1 3 ] then [1 6 ]   | /'3' then /'6'

majority_acquire: NAME RECORD / ARGS 0 fresh known 0
free                  |           | a 1 30000 | [1 0  ]    | a=1 30000
free, to re-enter     |           | a 2 30000 | [-1 0  ]
own, one more         | a=1 30000 | a 2 60000 | [1 0  ]    | a=2 60000
other, without an end | b=2       | a 1 30000 | [0 -1 b ]  | same
wrong type            | 'x'       | a 1 30000 | -WRONGTYPE | same
`
