package dump

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// parseFull reads "<2x3xf32> [5.000000e-01, …]".
func parseFull(body string) (record, error) {
	head, list, ok := strings.Cut(body, "> [")
	if !ok {
		return record{}, fmt.Errorf("%.60q does not continue like tensor<2x3xf32> [1.0e+00, …]", body)
	}
	sizes := strings.Split(head[1:], "x")
	r := record{style: styleFull, Shape: []int{}}
	for _, s := range sizes[:len(sizes)-1] {
		d, err := parseSize(s)
		if err != nil {
			return record{}, err
		}
		r.Shape = append(r.Shape, d)
	}
	var err error
	if r.DType, err = parseDType(sizes[len(sizes)-1]); err != nil {
		return record{}, err
	}
	if list = strings.TrimRight(list, " "); !strings.HasSuffix(list, "]") {
		return record{}, classError{tensor.ErrTruncated, "the line ends within the tensor"}
	}
	l := lists{words: words{text: list}, shape: r.Shape, leaf: -1, found: []int{-1}, values: values{exponents: true}}
	if err := l.list(0, 0); err != nil {
		return record{}, err
	}
	if rest := strings.TrimSpace(list[l.at:]); rest != "" {
		return record{}, fmt.Errorf("%.40q after the tensor", rest)
	}
	return l.record(r, true)
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
