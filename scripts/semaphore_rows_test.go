package scripts_test

const semaphoreRows = `
semaphore_acquire: NAME CALLS:u / ARGS
enough for all         | '7'                    | 3 2 1   | [2 4]      | '4', %u.3.2.4
enough for one         | '7'                    | 3 1     | [1 6]      | '6', %u.3.1.6
enough, with a TTL     | '7' 60000              | 3 7     | [1 0]      | '0' 60000, %u.3.1.0
enough for the first   | '7'                    | 3 2 6 1 | [1 5]      | '5', %u.3.1.5
not enough             | '7'                    | 3 8 1   | [0 7]      | '7', %u.3.0.7
more taken than are    | '-2'                   | 3 1     | [0 -2]     | '-2', %u.3.0.-2
none                   |                        | 3 1     | [-2 0]     | %u.3.-2.0
as the next command    | '7', %u.2.1.9          | 3 2     | [1 5]      | '5', %u.3.1.5
carried out before     | '7', %u.3.1.9          | 3 2     | [1 9]      | same
refused before         | '7', %u.3.0.-2         | 3 2     | [0 -2]     | same
late                   | '7', %u.10.1.9         | 9 2     | -LATE      | same
another's command      | '7', %v.10.1.9         | 9 2     | [1 5]      | '5', %u.9.1.5, %v.10.1.9
wrong type             | a=1                    | 3 2     | -WRONGTYPE | same
no number              | '1.5'                  | 3 1     | -WRONGTYPE | same

semaphore_add: NAME CALLS:u / ARG ARG OR0 PERMITS
released               | '7'                    | 3 2     | [1 9]      | '9', %u.3.1.9   | 9
with a TTL             | '7' 60000              | 3 2 1   | [1 9]      | '9' 60000, %u.3.1.9 | 9
none yet               |                        | 3 2     | [1 2]      | '2', %u.3.1.2   | 2
only if there is one   |                        | 3 2 1   | [0 0]      | %u.3.0.0
taken away             | '7'                    | 3 -7    | [1 0]      | '0', %u.3.1.0   | 0
taken away, not free   | '7'                    | 3 -9    | [1 -2]     | '-2', %u.3.1.-2
given back of those    | '-5'                   | 3 2     | [1 -3]     | '-3', %u.3.1.-3
carried out before     | '7', %u.3.1.7          | 3 2     | [1 7]      | same
late                   | '7', %u.4.1.7          | 3 2     | -LATE      | same
as many as can be      | '2147483646'           | 3 1     | [1 2147483647] | '2147483647', %u.3.1.2147483647 | 2147483647
too many               | '2147483647'           | 3 1     | -BADVALUE there would be more than 2147483647 permits | same
wrong type             | a=1                    | 3 2     | -WRONGTYPE | same

semaphore_yield: NAME CALLS:u / ARG ARG OR0 PERMITS OR0 OR0
none waits             | '7'                    | 3 2     | [0 7]      | '7', %u.3.0.7
none waits, none free   | '0'                   | 3 2     | [0 0]      | '0', %u.3.0.0
but for the client     | '7' <1                 | 3 2 0 1 | [0 7]      | '7', %u.3.0.7
others wait            | '7' <2                 | 3 2 0 1 | [1 9]      | '9', %u.3.1.9   | 9
to none, forced        | '7' 60000              | 3 2 1 1 1 | [1 9]    | '9' 60000, %u.3.1.9 | 9
to none, too few       | '-1'                   | 3 2     | [1 1]      | '1', %u.3.1.1   | 1
none any more          |                        | 3 2 1   | [-2 0]     | %u.3.-2.0
none any more, made    |                        | 3 2     | [1 2]      | '2', %u.3.1.2   | 2
carried out before     | '7', %u.3.0.9 <2       | 3 2     | [0 9]      | same
wrong type             | a=1                    | 3 2     | -WRONGTYPE | same

semaphore_set: NAME CALLS:u / ARG ARG OR0 PERMITS
none yet               |                        | 3 7       | [1 7]    | '7', %u.3.1.7   | 7
with a TTL             |                        | 3 7 60000 | [1 7]    | '7' 60000, %u.3.1.7 | 7
there is one           | '2' 60000              | 3 7       | [0 2]    | '2' 60000, %u.3.0.2
carried out before     | '2', %u.3.1.7          | 3 7       | [1 7]    | same
wrong type             | a=1                    | 3 7       | -WRONGTYPE | same

forget_command: CALLS:u / ARG
the last command       | '7', %u.3.1.7          | 3       | 1 then 0   | '7'
an earlier command     | '7', %u.2.1.7          | 3       | 1 then 0   | '7'
not a later one        | '7', %u.10.1.7         | 9       | 0          | same
not another's          | '7', %v.3.1.7          | 3       | 0          | same
none                   | '7'                    | 3       | 0          | same
no record of ours      | '7', %u.99:x           | 100     | 0          | same

semaphore_drain: NAME CALLS:u / ARG
free ones              | '7' 60000              | 3       | [7]        | '0' 60000, %u.3.7
none free              | '0'                    | 3       | [0]        | '0', %u.3.0
more taken than are    | '-2'                   | 3       | [-2]       | '0', %u.3.-2
no semaphore           |                        | 3       | [0]        | %u.3.0
carried out before     | '7', %u.3.9            | 3       | [9]        | same
wrong type             | a=1                    | 3       | -WRONGTYPE | same

semaphore_inspect: NAME /
with a TTL             | '7' 60000              |         | [7 60000]  | same
more taken than are    | '-2'                   |         | [-2 -1]    | same
none                   |                        |         | [0 -2]     | same
wrong type             | a=1                    |         | -WRONGTYPE | same
`
