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

// digest encodes values so that two have the same encoding if they differ only in the time on the clock, in the size of
// numbers of which only the order matters, or in the names of permits.
type digest struct {
	buf     []byte
	now     machine.Instant
	names   [][16]byte
	ordered [2][]ranked
	types   map[reflect.Type][]field
}

// ranked is a number, and the index in buf for its rank.
type ranked struct {
	number uint64
	at     int
}

type field struct {
	index int
	means meaning
}

// meaning is the meaning of a field, by its name.
type meaning uint8

const (
	plain   meaning = iota
	instant         // a time.Duration, unless its name says otherwise
	length
	age
	numbered // with sequence, the two kinds of ordered numbers
	sequence
	skipped
)

var meanings = map[string]meaning{
	"Lease": length, "Leases": length, "MaxHold": length, "AtLeast": length, "keepUntil": instant, "Wait": length, "lease": length, "unacked": length, "sentAt": age, "wakeAt": instant,
	"number": numbered, "Number": numbered, "nextNumber": numbered, "seq": sequence, "Seq": sequence,
	"cfg": skipped, "effects": skipped,
	"mayArrive": skipped, // no decision depends on it, only what Close leaves in Redis
}

func newDigest() *digest { return &digest{types: map[reflect.Type][]field{}} }

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

func (d *digest) write(value any) { d.value(reflect.ValueOf(value), plain) }

func (d *digest) int(n int64) { d.buf = binary.AppendVarint(d.buf, n) }

var durationType = reflect.TypeFor[time.Duration]()

func (d *digest) value(v reflect.Value, means meaning) {
	switch v.Kind() {
	case reflect.Bool:
		d.int(map[bool]int64{true: 1}[v.Bool()])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.number(v, means)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if means >= numbered {
			d.ordered[means-numbered] = append(d.ordered[means-numbered], ranked{v.Uint(), len(d.buf)})
			d.buf = append(d.buf, 0)
			return
		}
		d.int(int64(v.Uint()))
	case reflect.String:
		d.int(int64(v.Len()))
		d.buf = append(d.buf, v.String()...)
	case reflect.Struct:
		for _, f := range d.fields(v.Type()) {
			d.value(v.Field(f.index), f.means)
		}
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

// fields returns the fields of a type that are not skipped.
func (d *digest) fields(t reflect.Type) []field {
	if known, ok := d.types[t]; ok {
		return known
	}
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		means := meanings[f.Name]
		if means == plain && f.Type == durationType {
			means = instant
		}
		if means != skipped {
			all = append(all, field{i, means})
		}
	}
	d.types[t] = all
	return all
}

// number writes an instant as the ms left until it, at least 0, an age as the ms since it, and other numbers as they
// are. 0 is never.
func (d *digest) number(v reflect.Value, means meaning) {
	n := v.Int()
	switch since := int64(d.now) - n; {
	case n == 0 || means != instant && means != age:
		d.int(n)
	case means == age:
		d.int(since / int64(time.Millisecond))
	default:
		d.int(max((int64(time.Millisecond)-1-since)/int64(time.Millisecond), 0) + 1)
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
