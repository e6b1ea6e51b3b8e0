package report

import (
	"encoding/json"
	"fmt"
	"math"
)

// Float is a float64 that JSON can hold whatever it is. A finite value is a JSON number with all
// its digits; NaN and the infinities are the strings "NaN", "Infinity" and "-Infinity", which
// Python's float() and JavaScript's Number() read.
type Float float64

// MarshalJSON writes f as a number, or as one of the three strings.
func (f Float) MarshalJSON() ([]byte, error) {
	v := float64(f)
	switch {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads what MarshalJSON writes; any other string is an error that quotes it. Null
// leaves f as it is.
func (f *Float) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "null":
		return nil
	case `"NaN"`:
		*f = Float(math.NaN())
		return nil
	case `"Infinity"`:
		*f = Float(math.Inf(1))
		return nil
	case `"-Infinity"`:
		*f = Float(math.Inf(-1))
		return nil
	}
	var v float64
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf(`%s is not a number, nor "NaN", "Infinity" or "-Infinity"`, data)
	}
	*f = Float(v)
	return nil
}
