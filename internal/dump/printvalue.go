package dump

import (
	"fmt"
	"strconv"
	"strings"
)

// maxNumber is the number of characters after which MAX cuts a number.
const maxNumber = 31

// values collects the printed values, and what their texts say about the type.
type values struct {
	list      []float64
	lost      []bool // nil until a value is lost
	precision int
	float     bool // there was a point, an exponent, nan or inf
	boolean   bool // there was True or False
	exponents bool // floats have an exponent, which a cut removes first
}

// add reads one element.
func (v *values) add(word string) error {
	var x float64
	lost := false
	switch strings.ToLower(word) {
	case "true", "false":
		v.boolean = true
		if word[0]|0x20 == 't' {
			x = 1
		}
	default:
		lost = v.cut(word)
		if lost {
			word = "0." // no integer has that many digits
		}
		var err error
		x, err = strconv.ParseFloat(word, 64)
		if err != nil || strings.ContainsAny(word, "xXpP_") { // hexadecimal forms are not printed
			return fmt.Errorf("%.40q is not a number", word)
		}
		v.float = v.float || strings.ContainsAny(word, ".eEnN")
		if _, decimals, ok := strings.Cut(word, "."); ok {
			n := strings.IndexAny(decimals, "eE")
			if n < 0 {
				n = len(decimals)
			}
			v.precision = max(v.precision, n)
		}
	}
	if lost && v.lost == nil {
		v.lost = make([]bool, len(v.list))
	}
	if v.lost != nil {
		v.lost = append(v.lost, lost)
	}
	v.list = append(v.list, x)
	return nil
}

// cut reports whether digits before the point, or the exponent, may be missing. Missing decimals do
// not matter.
func (v *values) cut(word string) bool {
	return len(word) >= maxNumber && strings.Trim(word, "+-.eE0123456789") == "" &&
		(v.exponents || !strings.Contains(word, "."))
}

// record adds the known values to r. index has their element numbers; it is nil if all elements
// were printed, in order.
func (v *values) record(r record, index []int) record {
	r.Complete = index == nil && v.lost == nil
	if r.DType.IsFloat() {
		r.Precision = v.precision
	}
	if index == nil {
		index = make([]int, len(v.list))
		for i := range index {
			index[i] = i
		}
	}
	r.Index, r.Values = index, v.list
	if v.lost != nil {
		r.Index, r.Values = nil, nil
		for i, lost := range v.lost {
			if !lost {
				r.Index, r.Values = append(r.Index, index[i]), append(r.Values, v.list[i])
			}
		}
	}
	return r
}
