package explore

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// digest encodes values so that two values have the same encoding if they differ only in the time on the clock, in the
// size of numbers that matter only by their order, or in the names of permits.
type digest struct {
	buf     []byte
	now     machine.Instant
	names   [][16]byte
	ordered [2][]ranked
	// last has the numbers from which other numbers are counted back; nil if numbers are ranked.
	last     *Last
	meanings map[string]Meaning
	types    map[reflect.Type][]field
}

// ranked is a number, and the index in buf for its rank.
type ranked struct {
	number uint64
	at     int
}

type field struct {
	index int
	means Meaning
	// fields are the fields of a struct.
	fields []field
}

// Meaning is the meaning of a field, by its name or, where other fields have the same name, by "type.name".
type Meaning uint8

// The meanings.
const (
	Plain    Meaning = iota
	Instant          // a time.Duration, unless its name says otherwise
	Length           // a time.Duration
	Age              // a time.Duration
	Numbered         // with Sequence, the two kinds of ordered numbers
	Sequence
	Term // an ordered number with a name
	Some // only whether it is zero matters or, of a slice, its length
	Kind // a number; 0: the struct is not in use, and the fields that follow do not matter
	Skipped
)

// meanings are the meanings of the fields in worlds of Processes.
var meanings = map[string]Meaning{
	"Lease": Length, "Leases": Length, "MaxHold": Length, "AtLeast": Length, "keepUntil": Instant, "Wait": Length,
	"lease": Length, "unanswered": Length, "sentAt": Age, "nextEnd": Instant,
	"number": Numbered, "Number": Numbered, "nextNumber": Numbered, "seq": Sequence, "Seq": Sequence,
	"cfg": Skipped, "effects": Skipped, "revision": Skipped,
	"mayArrive": Skipped, // no decision depends on it, only what Close leaves in Redis
}

// Digest hashes the state of one machine at a time, for a world that is not one of Processes.
type Digest struct{ digest }

// NewDigest returns a Digest for machines whose fields have these meanings.
func NewDigest(meanings map[string]Meaning) *Digest { return &Digest{*newDigest(meanings)} }

// Last are the last numbers of a machine, from which its numbers are counted back, and the names of its terms.
type Last struct {
	Number, Sequence uint64
	Term             func(uint64) int64
}

// Sum returns the hash of a machine. It is the same in every process, and for all machines that differ only in the time
// on the clock and in the size of their numbers.
func (d *Digest) Sum(now machine.Instant, machine any, last Last) uint64 {
	d.begin(now)
	d.last = &last
	d.write(machine)
	return d.sum()
}

func newDigest(meanings map[string]Meaning) *digest {
	return &digest{meanings: meanings, types: map[reflect.Type][]field{}}
}

func (d *digest) begin(now machine.Instant) {
	d.buf, d.names, d.now = d.buf[:0], d.names[:0], now
	d.ordered = [2][]ranked{d.ordered[0][:0], d.ordered[1][:0]}
}

// sum returns a hash, which is the same in every process, so that a limited exploration is repeatable.
func (d *digest) sum() uint64 {
	h := fnv.New64a()
	_, _ = h.Write(d.buf)
	return h.Sum64()
}

// rank replaces the numbers since the last call by their ranks.
func (d *digest) rank() {
	for i, all := range d.ordered {
		slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(a.number, b.number) })
		last, rank := uint64(0), byte(0)
		for _, p := range all {
			if p.number != last {
				if rank == math.MaxUint8 {
					panic("there are more numbers than ranks")
				}
				last, rank = p.number, rank+1
			}
			d.buf[p.at] = rank
		}
		d.ordered[i] = all[:0]
	}
}

func (d *digest) write(value any) { d.value(reflect.ValueOf(value), Plain) }

func (d *digest) int(n int64) { d.buf = binary.AppendVarint(d.buf, n) }

func (d *digest) bool(b bool) {
	if b {
		d.int(1)
	} else {
		d.int(0)
	}
}

var durationType = reflect.TypeFor[time.Duration]()

func (d *digest) value(v reflect.Value, means Meaning) {
	switch {
	case means == Some && v.Kind() == reflect.Slice:
		d.int(int64(v.Len()))
		return
	case means == Some:
		d.bool(!v.IsZero())
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		d.bool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.number(v, means)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.unsigned(v.Uint(), means)
	case reflect.String:
		d.int(int64(v.Len()))
		d.buf = append(d.buf, v.String()...)
	case reflect.Struct:
		d.structure(v, d.fields(v.Type()))
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			d.int(0)
			return
		}
		d.int(1)
		d.value(v.Elem(), means)
	case reflect.Slice:
		d.int(int64(v.Len()))
		for i := range v.Len() {
			d.value(v.Index(i), means)
		}
	case reflect.Map: // by texts
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		d.int(int64(len(keys)))
		for _, key := range keys {
			d.value(key, Plain)
			d.value(v.MapIndex(key), means)
		}
	case reflect.Array:
		if v.Len() == 16 {
			d.name(v)
			return
		}
		for i := range v.Len() {
			d.value(v.Index(i), means)
		}
	default:
		panic("unexpected type: " + v.Type().String())
	}
}

// structure writes a struct with these fields.
func (d *digest) structure(v reflect.Value, fields []field) {
	for i := range fields {
		f := &fields[i]
		one := v.Field(f.index)
		if f.fields != nil {
			d.structure(one, f.fields)
			continue
		}
		if d.value(one, f.means); f.means == Kind && one.IsZero() {
			return
		}
	}
}

// fields returns the fields of a type that are not skipped.
func (d *digest) fields(t reflect.Type) []field {
	if known, ok := d.types[t]; ok {
		return known
	}
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		means, found := d.meanings[t.Name()+"."+f.Name]
		if !found {
			means = d.meanings[f.Name]
		}
		if means == Plain && f.Type == durationType {
			means = Instant
		}
		if means == Skipped {
			continue
		}
		one := field{index: i, means: means}
		if f.Type.Kind() == reflect.Struct {
			one.fields = d.fields(f.Type)
		}
		all = append(all, one)
	}
	d.types[t] = all
	return all
}

// number writes an instant as the ms left until it, at least 0, an age as the ms since it, and other numbers as they
// are. 0 is never.
func (d *digest) number(v reflect.Value, means Meaning) {
	n := v.Int()
	switch since := int64(d.now) - n; {
	case n == 0 || means != Instant && means != Age:
		d.int(n)
	case means == Age:
		d.int(since / int64(time.Millisecond))
	default:
		d.int(max((int64(time.Millisecond)-1-since)/int64(time.Millisecond), 0) + 1)
	}
}

// unsigned writes an ordered number as its rank, or as its distance from the last one, and other numbers as they are.
func (d *digest) unsigned(n uint64, means Meaning) {
	switch {
	case means < Numbered:
		d.int(int64(n))
	case d.last == nil:
		d.ordered[means-Numbered] = append(d.ordered[means-Numbered], ranked{n, len(d.buf)})
		d.buf = append(d.buf, 0)
	case n == 0:
		d.int(-1)
	case means == Term:
		d.int(d.last.Term(n))
	case means == Sequence:
		d.int(int64(d.last.Sequence - n))
	default:
		d.int(int64(d.last.Number - n))
	}
}

// name writes a permit's name as the order in which it first occurred.
func (d *digest) name(v reflect.Value) {
	var id [16]byte
	for i := range id {
		id[i] = byte(v.Index(i).Uint())
	}
	i := slices.Index(d.names, id)
	if i < 0 {
		i = len(d.names)
		d.names = append(d.names, id)
	}
	d.int(int64(i))
}
