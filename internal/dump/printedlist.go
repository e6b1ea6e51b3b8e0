package dump

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/tensor"
)

const (
	edge      = 3  // elements that are printed at each end of a summarised axis
	maxNumber = 31 // the characters after which MAX cuts a number
)

// words cuts text into brackets, commas, equal signs and what stands between them.
type words struct {
	text string
	at   int
}

func (w *words) next() string {
	for w.at < len(w.text) && strings.IndexByte(" \n\t", w.text[w.at]) >= 0 {
		w.at++
	}
	from := w.at
	for w.at < len(w.text) && strings.IndexByte("()[],= \n\t", w.text[w.at]) < 0 {
		w.at++
	}
	if w.at == from && w.at < len(w.text) {
		w.at++
	}
	return w.text[from:w.at]
}

// end requires that nothing follows.
func (w *words) end() error {
	if rest := strings.TrimSpace(w.text[w.at:]); rest != "" {
		return fmt.Errorf("%.40q after the tensor", rest)
	}
	return nil
}

// parseFull reads "<2x3xf32> [5.000000e-01, …]".
func parseFull(body string) (record, error) {
	head, list, ok := strings.Cut(body, "> [")
	if !ok {
		return record{}, fmt.Errorf("%.60q does not continue like tensor<2x3xf32> [1.0e+00, …]", body)
	}
	sizes := strings.Split(head[1:], "x")
	l := lists{record: record{style: styleFull, Shape: []int{}}, words: words{text: list}, leaf: -1, found: []int{-1}, typed: true}
	for _, s := range sizes[:len(sizes)-1] {
		d, err := parseSize(s)
		if err != nil {
			return record{}, err
		}
		l.Shape = append(l.Shape, d)
	}
	var err error
	if l.DType, err = parseDType(sizes[len(sizes)-1]); err != nil {
		return record{}, err
	}
	if !strings.HasSuffix(strings.TrimRight(list, " "), "]") {
		return record{}, fmt.Errorf("%w: the line ends within the tensor", tensor.ErrTruncated)
	}
	if err = l.list(0, 0); err == nil {
		err = l.end()
	}
	return l.finish(err)
}

// parseBrackets reads "([[1.0, 2.0], …], dtype=f32, shape=[1,2])": what MAX prints in style COMPACT,
// and what torch prints.
func parseBrackets(text string) (record, error) {
	end, err := endOfList(text)
	if err != nil {
		return record{}, err
	}
	l := lists{record: record{style: styleTorch, DType: tensor.I64}, words: words{text: text[:end], at: 1}, leaf: -1}
	if err := l.attributes(&words{text: text, at: end}); err != nil {
		return record{}, err
	}
	if l.style == styleCompact {
		n, err := tensor.NumElems(l.Shape)
		if err != nil {
			return record{}, err
		}
		if n > 0 { // else nothing is known of the brackets
			l.sizes = nested(l.Shape)
		}
	}
	if word := l.next(); word == "[" {
		err = l.list(0, 0)
	} else { // a tensor without axes
		err = l.value(word, 0, 0)
	}
	return l.finish(err)
}

// endOfList returns where the brackets close that stand first, or the number ends that does.
func endOfList(text string) (int, error) {
	depth := 0
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0 && (c == ',' || c == ')'):
			return i, nil
		}
		if depth < 0 || depth > tensor.MaxRank {
			return 0, errors.New("brackets do not match")
		}
	}
	return 0, fmt.Errorf("%w: the log ends within the tensor", tensor.ErrTruncated)
}

// nested are the sizes of the lists that MAX prints for a shape: all axes but the last two count as one list of
// matrices, and a matrix has a list around each row.
func nested(shape []int) []int {
	padded := append(slices.Repeat([]int{1}, max(0, 2-len(shape))), shape...)
	at := len(padded) - 2
	matrices := 1
	for _, d := range padded[:at] {
		matrices *= d
	}
	sizes := slices.Repeat([]int{1}, at)
	if at > 0 {
		sizes[at-1] = matrices
	}
	return append(sizes, padded[at:]...)
}

// lists reads nested lists of values into a record. All at one depth must have the same length.
type lists struct {
	record
	words
	typed bool  // the type was printed: torch names only that which is not the default for such values
	sizes []int // of MAX: of the lists by depth; nil if they are not known
	found []int // the lengths of the lists that were closed, by depth; −1 while none was
	leaf  int   // the depth of the values, −1 before the first
	read  int   // how many values there were

	isFloat, isBool bool // there was a point, an exponent, nan or inf; True or False
}

// attributes reads ", dtype=f32, shape=[2,3])". The word for the shape is MAX's, size is torch's.
func (l *lists) attributes(w *words) (err error) {
	dtype := ""
	for {
		word := w.next()
		if word == ")" {
			break
		}
		key, eq := w.next(), w.next()
		if word != "," || eq != "=" {
			return fmt.Errorf("%q instead of %q or %q", word+key+eq, ", dtype=…", ")")
		}
		switch key {
		case "dtype":
			dtype = w.next()
		case "shape", "size":
			if key == "shape" {
				l.style = styleCompact
			}
			l.Shape, err = parseSizes(w)
		case "device", "grad_fn", "requires_grad":
			w.next()
		default:
			return fmt.Errorf("unknown attribute %.40q", key)
		}
		if err != nil {
			return err
		}
	}
	if l.typed = dtype != ""; l.typed || l.style == styleCompact {
		if l.DType, err = parseDType(dtype); err != nil {
			return err
		}
	}
	return w.end()
}

// parseSizes reads "[2,3]" or "(2, 3)".
func parseSizes(w *words) ([]int, error) {
	shape := []int{}
	if open := w.next(); open != "[" && open != "(" {
		return nil, fmt.Errorf("%.40q is not a shape", open)
	}
	for {
		switch word := w.next(); word {
		case "]", ")":
			return shape, nil
		case ",":
		default:
			d, err := parseSize(word)
			if err != nil {
				return nil, err
			}
			shape = append(shape, d)
		}
	}
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

// list reads a list after its bracket. at is how many lists of its depth come before it, those that are not
// printed too.
func (l *lists) list(depth, at int) error {
	if depth == len(l.found) {
		if l.sizes != nil && depth >= len(l.sizes) || slices.ContainsFunc(l.found, func(n int) bool { return n >= 0 }) {
			return l.mismatch()
		}
		l.found = append(l.found, -1)
	}
	size := -1
	if l.sizes != nil {
		size = l.sizes[depth]
	}
	n := 0
	for {
		word, err := l.next(), error(nil)
		switch word {
		case ",":
			continue
		case "...":
			if l.sizes == nil {
				return fmt.Errorf("%w: torch printed a summary without the shape: torch.set_printoptions(threshold=float('inf')), or save files",
					tensor.ErrUnsupported)
			}
			if n != edge || size <= 2*edge {
				return l.mismatch()
			}
			n = size - edge
			continue
		case "]":
			if l.found[depth] < 0 {
				l.found[depth] = n
			}
			if l.found[depth] != n || size >= 0 && n != size {
				return l.mismatch()
			}
			return nil
		case "[":
			err = l.list(depth+1, at*max(size, 0)+n)
		default:
			err = l.value(word, depth+1, at*max(size, 0)+n)
		}
		if err != nil {
			return err
		}
		n++
	}
}

// value reads an element. Of which digits are missing nothing is known: MAX cuts numbers, and what is cut first is the
// exponent, if there is one.
func (l *lists) value(word string, depth, at int) error {
	cut := len(word) >= maxNumber && strings.Trim(word, "+-.eE0123456789") == "" && (l.style == styleFull || !strings.Contains(word, "."))
	x := 0.0
	switch lower := strings.ToLower(word); {
	case lower == "true" || lower == "false":
		l.isBool = true
		if lower == "true" {
			x = 1
		}
	case cut:
		l.isFloat = true // no integer has that many digits
	default:
		var err error
		if x, err = strconv.ParseFloat(word, 64); err != nil || strings.ContainsAny(word, "xXpP_") { // hexadecimal forms are not printed
			return fmt.Errorf("element %d: %.40q is not a number", l.read, word)
		}
		l.isFloat = l.isFloat || strings.ContainsAny(word, ".eEnN")
		if _, decimals, ok := strings.Cut(lower, "."); ok {
			decimals, _, _ = strings.Cut(decimals, "e")
			l.Precision = max(l.Precision, len(decimals))
		}
	}
	if l.leaf < 0 {
		l.leaf = depth
	}
	if l.leaf != depth || l.sizes != nil && depth != len(l.sizes) {
		return l.mismatch()
	}
	if l.sizes == nil {
		at = l.read
	}
	l.read++
	if !cut {
		l.Index, l.Values = append(l.Index, at), append(l.Values, x)
	}
	return nil
}

func (l *lists) mismatch() error {
	if l.sizes == nil {
		return errors.New("the lists are of different lengths")
	}
	return fmt.Errorf("element %d is in brackets that are not those of shape %s: lines are missing or belong to another tensor",
		l.read, tensor.FormatShape(l.Shape))
}

// finish returns the record of what was read.
func (l *lists) finish(err error) (record, error) {
	if err != nil {
		return record{}, err
	}
	switch {
	case l.typed:
	case l.isBool:
		l.DType = tensor.Bool
	case l.isFloat || l.read == 0:
		l.DType = tensor.F32
	}
	if l.Shape == nil {
		l.Shape = append([]int{}, l.found...)
	}
	n, err := tensor.NumElems(l.Shape)
	if err == nil && n != l.read && (l.style != styleCompact || n == 0) {
		err = fmt.Errorf("shape %s has %d elements, %d are printed", tensor.FormatShape(l.Shape), n, l.read)
	}
	if !l.DType.IsFloat() {
		l.Precision = 0
	}
	return l.record, err
}
