package core_test

// table remembers which states were seen, by their hashes, and how each was reached. It
// is a hash table of its own since there are millions, of a few bytes each.
type table struct {
	hashes []uint64
	from   []uint64
	by     []move
	n      int
}

func newTable() *table {
	return &table{hashes: make([]uint64, 1<<12), from: make([]uint64, 1<<12), by: make([]move, 1<<12)}
}

// slot is where a hash is, or would be.
func (t *table) slot(hash uint64) int {
	mask := len(t.hashes) - 1
	i := int(hash) & mask
	for t.hashes[i] != 0 && t.hashes[i] != hash {
		i = (i + 1) & mask
	}
	return i
}

// add adds a state unless it is known.
func (t *table) add(hash, from uint64, by move) bool {
	i := t.slot(hash)
	if t.hashes[i] == hash {
		return false
	}
	t.hashes[i], t.from[i], t.by[i] = hash, from, by
	if t.n++; 2*t.n > len(t.hashes) {
		t.grow()
	}
	return true
}

func (t *table) grow() {
	old := *t
	size := 2 * len(old.hashes)
	t.hashes, t.from, t.by = make([]uint64, size), make([]uint64, size), make([]move, size)
	for k, hash := range old.hashes {
		if hash != 0 {
			i := t.slot(hash)
			t.hashes[i], t.from[i], t.by[i] = hash, old.from[k], old.by[k]
		}
	}
}

// path is how a state was reached.
func (t *table) path(hash uint64) []move {
	var reverse []move
	for {
		i := t.slot(hash)
		if t.from[i] == 0 {
			break
		}
		reverse = append(reverse, t.by[i])
		hash = t.from[i]
	}
	path := make([]move, 0, len(reverse))
	for i := len(reverse) - 1; i >= 0; i-- {
		path = append(path, reverse[i])
	}
	return path
}
