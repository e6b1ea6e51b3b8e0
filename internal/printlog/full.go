package printlog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// parseFull reads "<2x3xf32> [5.000000e-01, …]".
func parseFull(body string) (Record, error) {
	head, list, ok := strings.Cut(body, "> [")
	if !ok {
		return Record{}, fmt.Errorf("%.60q does not continue like tensor<2x3xf32> [1.0e+00, …]", body)
	}
	sizes := strings.Split(head[1:], "x")
	r := Record{Style: Full, Shape: []int{}}
	for _, s := range sizes[:len(sizes)-1] {
		d, err := parseSize(s)
		if err != nil {
			return Record{}, err
		}
		r.Shape = append(r.Shape, d)
	}
	var err error
	if r.DType, err = parseDType(sizes[len(sizes)-1]); err != nil {
		return Record{}, err
	}
	n, err := tensor.NumElems(r.Shape)
	if err != nil {
		return Record{}, err
	}
	list, ok = strings.CutSuffix(strings.TrimRight(list, " "), "]")
	if !ok {
		return Record{}, classError{tensor.ErrTruncated, "the line ends within the tensor"}
	}
	v := values{exponents: true}
	for word := range strings.SplitSeq(list, ", ") {
		if word == "" && list == "" {
			break
		}
		if err := v.add(word); err != nil {
			return Record{}, fmt.Errorf("element %d: %w", len(v.list), err)
		}
	}
	if len(v.list) != n {
		return Record{}, fmt.Errorf("shape %s has %d elements, %d are printed", tensor.FormatShape(r.Shape), n,
			len(v.list))
	}
	return v.record(r, nil), nil
}

func parseSize(s string) (int, error) {
	d, err := strconv.ParseUint(s, 10, strconv.IntSize-1)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not the size of an axis", s)
	}
	return int(d), nil
}

// parseDType reads the names of both engines. MAX prints those of MLIR: f32, bf16, si64, f8E4M3FN.
func parseDType(s string) (tensor.DType, error) {
	if rest, ok := strings.CutPrefix(s, "f8E"); ok {
		s = "float8_e" + rest
	}
	return tensor.ParseDType(s)
}
