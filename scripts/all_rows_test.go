package scripts_test

import (
	"fmt"
	"strings"
)

const grantedRows = `
acquire_all:
all kinds                    | plain; fenced; fair; read; fenced /'7'; write | u:1 30000 5 | [1 0 5,12 ] then [1 0 10,17 ] | u:1=1 30000; u:1=1 30000 /'5' then u:1=1 30000 /'10'; u:1=1 30000; mode=read u:1=1 30000, u:1#1 30000; u:1=1 30000 /'12' then u:1=1 30000 /'17'; mode=write u:1:write=1 30000
own, from an earlier request | plain u:1=1 20000; fenced u:1=1 20000 /'7'; fair u:1=1 20000 /v:1@300; read mode=read u:1=1 20000, u:1#1 20000; write mode=write u:1:write=1 20000 | u:1 30000 5 | [1 0 12 ] then [1 0 17 ] | u:1=1 30000; u:1=1 30000 /'12' then u:1=1 30000 /'17'; u:1=1 30000 /v:1@300; mode=read u:1=1 30000, u:1#1 30000; mode=write u:1:write=1 30000
a counter that would end     | fenced /'7' 60000 | u:1 30000 5 | [1 0 12 ] then [1 0 17 ] | u:1=1 30000 /'12' then u:1=1 30000 /'17'
counters that have lost some | fenced /'7' 60000; plain; fenced /'20' | u:1 30000 5+9+12 | [1 0 14,25 ] then [1 0 19,30 ] | u:1=1 30000 /'14' then u:1=1 30000 /'19'; u:1=1 30000; u:1=1 30000 /'25' then u:1=1 30000 /'30'
too few tokens are left      | plain; fenced /'9007199254740989' | u:1 30000 5 | -BADVALUE redisson_lock_token | same
a queue of the dead          | fair /v:1@-5 w:1 x:1@-7 | u:1 30000 5 | [1 0  ] | u:1=1 30000
a queue of one dead since now | fair /v:1@0 | u:1 30000 5 | [1 0  ] | u:1=1 30000
among longer readers         | read mode=read v:1=1 60000, v:1#1 60000 | u:1 30000 5 | [1 0  ] | mode=read u:1=1 v:1=1 60000, u:1#1 30000, v:1#1 60000
among shorter readers        | read mode=read v:1=1 20000, v:1#1 20000 | u:1 30000 5 | [1 0  ] | mode=read u:1=1 v:1=1 30000, u:1#1 30000, v:1#1 20000
past a lapsed one, and leaves | plain >v=2.7.0.0.0.-@-9 ^@-1 >15000; fenced >u=1.3.0.0.0.k-2@-4 ^@-1 >15000 /'7'; read >u=2.3.0.0.0.0@-4 ^@-1 >15000 | u:1 30000 5 1.4.0.0.0 | [1 0 12 ] then [1 0 17 ] | u:1=1 30000, >v=2.7.0.0.0.-@-9 ^@-1 >15000; u:1=1 30000 /'12' then u:1=1 30000 /'17'; mode=read u:1=1 30000, u:1#1 30000, >u=2.3.0.0.0.0@-4 ^@-1 >15000
refused, entries in all      | plain v:1=2 40000; fair; fenced; read; write | u:1 30000 5 1.4.0.0.0.r | [0 40000 v:1 1] | v:1=2 40000, >u=1.4.0.0.0.0@0 ^@0 >20000; ; >u=1.4.0.0.0.0@0 ^@0 >20000; >u=1.4.0.0.0.0@0 ^@0 >20000; >u=1.4.0.0.0.0@0 ^@0 >20000
refused, entries confirmed   | plain v:1=2 40000, >u=1.3.0.0.0.0@-5 ^@-1 >15000; plain >u=1.3.0.0.0.k-2@-4 ^@-1 >15000 | u:1 30000 5 1.4.0.0.0.r | [0 40000 v:1 1] | v:1=2 40000, >u=1.4.0.0.0.0@-5 ^@0 >20000; >u=1.4.0.0.0.k-2@-4 ^@0 >20000
refused, entries had lapsed  | plain v:1=2 40000, >u=1.3.0.0.0.-@-5 ^@-1 >15000; plain >u=1.3.0.0.0.-@-5 ^@-1 >15000 | u:1 30000 5 1.4.0.0.0.r | [0 40000 v:1 1] | v:1=2 40000, >u=1.4.0.0.0.0@-5 ^@0 >20000; >u=1.4.0.0.0.-@-5 ^@0 >20000
refused by two, had lapsed   | plain v:1=2 40000, >u=1.3.0.0.0.-@-5 ^@-1 >15000; plain v:1=2 40000, >u=1.3.0.0.0.-@-5 ^@-1 >15000 | u:1 30000 5 1.4.0.0.0.r | [0 40000 v:1 1] | v:1=2 40000, >u=1.4.0.0.0.-@-5 ^@0 >20000; v:1=2 40000, >u=1.4.0.0.0.-@-5 ^@0 >20000
refused, an entry was missing | plain v:1=2 40000, >u=1.3.0.0.0.0@-5 ^@-1 >15000; plain >u=1.3.0.0.0.k-30@-40 ^@-25 >15000 | u:1 30000 5 1.4.0.0.0.r | [0 40000 v:1 1] | v:1=2 40000, >u=1.4.0.0.0.0@0 ^@0 >20000; >u=1.4.0.0.0.0@0 ^@0 >20000
refused, and at the end of all | plain >u=1.3.0.0.0.k-2@-4 ^@-1 >v=2.7.0.0.1@-3 ^@-1 >15000; plain v:1=2 40000 | u:1 30000 5 1.4.0.0.0.r | [0 40000 v:1 2] then [0 20000 v:2 1] | v:2=1 20000, >u=1.4.0.0.0.0@0 ^@0 >20000; v:1=2 40000, >u=1.4.0.0.0.0@0 ^@0 >20000 | v>2.7.0
refused by the first in the queue | plain >v=2.7.0.3.1@-3 ^@-1 >15000 /'7' | u:1 30000 5 1.4.0.0.0.r | [0 20000 v:2 1] | v:2=1 20000, >u=1.4.0.0.0.0@0 ^@0 >20000 /'10' | v>2.7.10
reads with the first in the queue | read >v=2.7.1.0.1@-3 ^@-1 >15000 | u:1 30000 5 | [1 0  ] | mode=read u:1=1 v:2=1 30000, u:1#1 30000, v:2#1 20000 | v>2.7.0
reads with a longer first    | read >v=40000:2.7.1.0.1@-3 ^@-1 >15000 | u:1 30000 5 | [1 0  ] | mode=read u:1=1 v:2=1 40000, u:1#1 30000, v:2#1 40000 | v>2.7.0
reads, and lets others in     | read mode=read w:1=1 40000, w:1#1 40000, >u=1.3.1.0.0.0@-4 ^@-1 >v=2.7.1.0.1@-3 ^@-1 >15000 | u:1 30000 5 | [1 0  ] | mode=read u:1=1 v:2=1 w:1=1 40000, u:1#1 30000, v:2#1 20000, w:1#1 40000 | v>2.7.0
takes to read, and lets in    | read >u=1.3.1.0.0.0@-4 ^@-1 >v=2.7.1.0.1@-3 ^@-1 >w=8.8.0.0.1@-2 ^@-1 >15000 | u:1 30000 5 | [1 0  ] | mode=read u:1=1 v:2=1 30000, u:1#1 30000, v:2#1 20000, >w=8.8.0.0.1@-2 ^@-1 >20000 | v>2.7.0
refused by another MultiLock | plain; plain >v=2.7.0.0.0.k-4@-5 ^@-1 >15000 | u:1 30000 5 | [0 6000  2] | same
refused, left to others      | plain; write >open@3 >15000 | u:1 30000 5 1.4.0.0.0.r | [0 3000  2] | >u=1.4.0.0.0.0@0 ^@0 >20000; >u=1.4.0.0.0.0@0 ^@0 >open@3 >20000
among readers, with another  | read mode=read v:1=1 20000, v:1#1 20000, >w=1.1.1.0.1@-4 ^@-1 >x=1.1.0.0.0@-3 ^@-1 >u=9.9.0.0.1@-2 ^@-1 >15000 | u:1 30000 5 | [1 0  ] | mode=read u:1=1 v:1=1 w:1=1 30000, u:1#1 30000, v:1#1 20000, w:1#1 20000, >x=1.1.0.0.0@-3 ^@-1 >u=9.9.0.0.1@-2 ^@-1 >20000 | w>1.1.0
`

// yieldRows are those of yield_all; the entry at the end of all wait queues is the last argument.
const yieldRows = `
yield_all:
all kinds, alone        | plain u:1=1 30000; fenced u:1=1 30000 /'7'; read mode=read u:1=1 30000, u:1#1 30000; write mode=write u:1:write=1 30000 | u:1 1.4.0.0.0.r | [1 0] then [-1 0] | >u=1.4.0.0.0.0@0 ^@0 >20000; >u=1.4.0.0.0.0@0 ^@0 >20000 /'7'; >u=1.4.0.0.0.0@0 ^@0 >20000; >u=1.4.0.0.0.0@0 ^@0 >20000 | 0
without an entry        | plain u:1=1 30000; write mode=write u:1:write=1 30000 | u:1 | [1 0] then [-1 0] | ; | 0
to the next             | plain u:1=1 30000, >u=1.3.0.0.0.0@-5 ^@-1 >v=2.7.0.0.1@-3 ^@-1 >15000; plain u:1=1 30000 | u:1 1.4.0.0.0.r | [1 0] then [-1 0] | v:2=1 20000, >u=1.4.0.0.0.0@0 ^@0 >20000; >u=1.4.0.0.0.0@0 ^@0 >20000 | v>2.7.0
to another MultiLock    | plain u:1=1 30000, >v=2.7.0.0.0.0@-3 ^@-1 >15000; plain u:1=1 30000, >v=2.7.0.0.0.0@-3 ^@-1 >15000 | u:1 1.4.0.0.0.r | [1 0] then [-1 0] | >v=2.7.0.0.0.k0@-3 ^@-1 >u=1.4.0.0.0.0@0 ^@0 >20000; >v=2.7.0.0.0.k0@-3 ^@-1 >u=1.4.0.0.0.0@0 ^@0 >20000 | 0
to the next, with tokens | fenced u:1=1 30000, >v=2.7.0.3.1@-3 ^@-1 >15000 /'7' | u:1 | [1 0] then [-1 0] | v:2=1 20000 /'10' | v>2.7.10
held in part            | plain u:1=1 30000; plain v:1=1 30000 | u:1 1.4.0.0.0.r | [-1 0] | >u=1.4.0.0.0.0@0 ^@0 >20000; v:1=1 30000, >u=1.4.0.0.0.0@0 ^@0 >20000 | 0
among readers           | read mode=read u:1=1 v:1=1 30000, u:1#1 30000, v:1#1 30000 | u:1 1.4.0.0.0.r | [1 0] then [-1 0] | mode=read v:1=1 30000, v:1#1 30000, >u=1.4.0.0.0.0@0 ^@0 >20000
`

// refusals are locks that refuse, and the reply; %d is the index of the lock.
const refusals = `
plain v:1=2 40000                                     | [0 40000 v:1 %d]
plain v:1=2                                           | [0 -1 v:1 %d]
plain u:2=1 40000                                     | [0 40000 u:2 %d]
fenced v:1=2 40000 /'3'                               | [0 40000 v:1 %d]
fair v:1=2 40000                                      | [0 40000 v:1 %d]
fair /v:2@-5 v:1@60                                   | [0 60000  %d]
read mode=write v:1:write=1 40000                     | [0 40000 v:1:write %d]
read mode=read v:1=1 40000, v:1#1 40000, >w=1.1.0.0.1@-2 ^@-1 >15000 | [0 40000 v:1 %d]
read v:1=1 40000                                      | [0 40000 v:1 %d]
write mode=write v:1:write=1 40000                    | [0 40000 v:1:write %d]
write mode=read u:1=1 40000, u:1#1 40000              | [0 40000 u:1 %d]
plain 'x'                                             | -WRONGTYPE
plain email=7                                         | -WRONGTYPE
plain email=7 v:1=1 40000                             | -WRONGTYPE
fenced email=7 /'3'                                   | -WRONGTYPE
fair email=7                                          | -WRONGTYPE
fair /some:7@-5                                       | -WRONGTYPE
read mode=read path=7                                 | -WRONGTYPE
write mode=read path=7 u:1=1, u:1#1 40000             | -WRONGTYPE
`

// allRows adds to the granted rows those that are refused by the first or by the last lock; the other
// locks, of all kinds, stay unchanged.
func allRows() string {
	const free = "fenced /'7' 60000; plain; fair /v:1@-5; read; write"
	table := grantedRows + "counter of another type | fenced /a=1; " + free + " | u:1 30000 5 | -WRONGTYPE | same\n"
	for line := range strings.Lines(strings.TrimSpace(refusals)) {
		lock, reply, _ := strings.Cut(strings.TrimSpace(line), "|")
		for index, locks := range map[int]string{1: lock + "; " + free, 6: free + "; " + lock} {
			table += fmt.Sprintf("%s is the %dth | %s | u:1 30000 5 | %s | same\n", lock, index, locks, strings.ReplaceAll(reply, "%d", fmt.Sprint(index)))
		}
	}
	return table
}
