package core_test

// explored is a state on the frontier.
type explored struct {
	m    microcosm
	hash uint64
}

// frontier is the list of states to go on from. Its room is used again. If it is limited,
// it thins itself out when it is full, and keeps a part of all that come.
type frontier struct {
	chunks [][]explored
	n      int
	most   int // 0: there is no limit
	sparse int // how often it was thinned out by half
}

const (
	chunk = 256
	// levels is how much narrower a limited exploration goes into the depths than it is big.
	levels = 150
)

func (f *frontier) clear() { f.n, f.most, f.sparse = 0, 0, 0 }

// limit bounds the frontier from now on.
func (f *frontier) limit(most int) {
	f.most = most
	f.thin()
}

func (f *frontier) at(i int) *explored { return &f.chunks[i/chunk][i%chunk] }

// place is where the next state goes, if it is kept.
func (f *frontier) place() *explored {
	if f.n/chunk == len(f.chunks) {
		f.chunks = append(f.chunks, make([]explored, chunk))
	}
	return f.at(f.n)
}

// keep keeps the state in that place.
func (f *frontier) keep() {
	if !f.takes(f.at(f.n)) {
		return
	}
	f.n++
	f.thin()
}

func (f *frontier) thin() {
	for f.most > 0 && f.n >= f.most {
		f.sparse++
		kept := 0
		for i := range f.n {
			if one := f.at(i); f.takes(one) {
				*f.at(kept) = *one
				kept++
			}
		}
		f.n = kept
	}
}

func (f *frontier) takes(one *explored) bool { return one.hash>>40&(1<<f.sparse-1) == 0 }
