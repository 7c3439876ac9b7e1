package scripts_test

const latchRows = `
latch_set: NAME CALLS:u / ARG ARG LATCH
none yet               |                               | 3 2     | [1 2]      | '2', %u.3.1.2 | 1
there is one           | '5'                           | 3 2     | [0 5]      | '5', %u.3.0.5
carried out before     | '1', %u.3.1.2                 | 3 2     | [1 2]      | same
late                   | '1', %u.4.1.2                 | 3 2     | -LATE      | same
wrong type             | a=1                           | 3 2     | -WRONGTYPE | same

latch_count_down: NAME CALLS:u COUNTED / ARG LATCH ARG ARGS
one                    | '5'                           | 3 1     | [4]        | '4', %u.3.4
several                | '5'                           | 3 3     | [2]        | '2', %u.3.2
none                   | '5'                           | 3 0     | [5]        | '5', %u.3.5
the last               | '1', %v.7.1                   | 3 1     | [0]        | %u.3.0, %v.7.1 | 0
more than are missing  | '2'                           | 3 5     | [0]        | %u.3.0 | 0
open                   |                               | 3 1     | [0]        | %u.3.0
open, but still there  | '-1'                          | 3 1     | [0]        | '-1', %u.3.0
carried out before     | '4', %u.3.4                   | 3 1     | [4]        | same
opened before          | '9', %u.3.0                   | 3 1     | [0]        | same
late                   | '4', %u.10.4                  | 9 1     | -LATE      | same
no record of ours      | '4', %u.2026-11-25            | 9999 1  | -WRONGTYPE | same
wrong type             | a=1                           | 3 1     | -WRONGTYPE | same
no number              | '1.5'                         | 3 1     | -WRONGTYPE | same
# by id
the first              | '5'                           | 3 0 a b | [3]        | '3' 3155760000000, %u.3.3, &a &b
one more               | '3' 3155760000000, &a &b      | 3 0 c   | [2]        | '2' 3155760000000, %u.3.2, &a &b &c
counted before         | '3' 3155760000000, &a &b      | 3 0 b   | [3]        | '3' 3155760000000, %u.3.3, &a &b
twice in one command   | '5'                           | 3 0 a a | [4]        | '4' 3155760000000, %u.3.4, &a
with others            | '5' 3155760000000, &a         | 3 2 a c | [2]        | '2' 3155760000000, %u.3.2, &a &c
only others            | '5' 3155760000000, &a         | 3 2     | [3]        | '3' 3155760000000, %u.3.3, &a
the ids have ended     | '5' 3155760000000             | 3 0 a   | [4]        | '4' 3155760000000, %u.3.4, &a
the last, of many      | '1' 3155760000000, &a &b &c   | 3 0 d   | [0]        | %u.3.0 | 0
of an earlier latch    | '5', &a &b                    | 3 0 a   | [4]        | '4' 3155760000000, %u.3.4, &a
opened by an id of an earlier latch | '1', &a          | 3 0 a   | [0]        | %u.3.0 | 0

latch_inspect: NAME /
closed                 | '5' 3155760000000, &a         |         | 5          | same
nearly open            | '1' 3155760000000, &a         |         | 1          | same
open                   |                               |         | 0
opened by Redisson     | &a &b                         |         | 0          | same
open, but still there  | '-1'                          |         | 0          | same
wrong type             | a=1                           |         | -WRONGTYPE | same
`
