package dump

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/tensor"
)

const (
	edge      = 3  // elements that are printed at each end of a summarised axis
	maxNumber = 31 // the characters after which MAX cuts a number
	// maxPrinted is the largest number of elements of a tensor of which a log shows the corners.
	maxPrinted = 1 << 26
)

// Printed says how much of a tensor a log shows.
type Printed struct {
	Known    []int // row-major element numbers, in increasing order; all others are zero in the tensor
	Decimals int   // the values are known to half a unit of this decimal; 0: exactly
	Relative bool  // MAX's style FULL, with exponents: Decimals counts those of the mantissa
}

// Whole reports whether every element was printed.
func (p *Printed) Whole(t *tensor.Tensor) bool { return len(p.Known) == t.Len() }

// printed reads one printed tensor: a list of values in lists, and what stands before or after it.
type printed struct {
	Printed
	dtype  tensor.DType
	shape  []int
	values []float64 // of the known elements; bools are 0 and 1, integers over 2^53 are rounded

	lines  *lineReader
	rest   string // of the line
	size   int    // bytes of text so far
	checks        // nothing is read after what is wrong

	axes    []axis // of the lists, by depth
	leaf    int    // the depth of the values, −1 before the first
	read    int    // how many values there were, those of unknown digits too
	corners bool   // the shape was printed, in MAX's style COMPACT: all of the axes may be summarised

	isFloat, isBool bool // there was a point, an exponent, nan or inf; True or False
}

// axis is what is printed of an axis: n elements, with "..." between the first and the last three or without.
type axis struct {
	n       int // −1 while no list of it was closed
	summary bool
}

// readPrinted reads a tensor that begins with body in the line, and all further lines that belong to it.
func readPrinted(body string, lines *lineReader) (Entry, error) {
	p := &printed{lines: lines, rest: body[1:], size: len(body), leaf: -1}
	if body[0] == '<' {
		p.readFull()
	} else {
		p.readBrackets()
	}
	if rest := strings.TrimSpace(p.rest); rest != "" {
		p.fail("%.40q after the tensor", rest)
	}
	return Entry{Tensor: p.tensor(), Printed: &p.Printed}, p.err
}

// readFull reads "2x3xf32> [5.000000e-01, …]", which MAX prints in style FULL on one line.
func (p *printed) readFull() {
	head, list, ok := strings.Cut(p.rest, "> [")
	sizes := strings.Split(head, "x")
	switch {
	case len(p.lines.text) >= maxText:
		p.fail(tooLong, maxText)
	case !ok:
		p.fail("%.60q does not continue like tensor<2x3xf32> [1.0e+00, …]", "<"+p.rest)
	case !strings.HasSuffix(strings.TrimRight(list, " "), "]"):
		p.fail("%w: the line ends within the tensor", tensor.ErrTruncated)
	}
	p.Relative, p.rest, p.shape = true, list, []int{}
	for _, s := range sizes[:len(sizes)-1] {
		p.addSize(s)
	}
	p.list(0)
	p.typed(sizes[len(sizes)-1])
	p.counted()
}

// readBrackets reads "[[1.0, 2.0], …], dtype=f32, shape=[1,2])": what MAX prints in style COMPACT,
// and what torch prints.
func (p *printed) readBrackets() {
	if word := p.word(); word == "[" {
		p.list(0)
	} else {
		p.value(word, 0) // a tensor without axes
	}
	p.attributes()
	switch {
	case p.corners:
		p.place()
		return
	case slices.ContainsFunc(p.axes, func(a axis) bool { return a.summary }):
		p.fail("%w: torch printed a summary without the shape: torch.set_printoptions(threshold=float('inf')), or save files",
			tensor.ErrUnsupported)
	case p.shape == nil:
		p.shape = []int{}
		for _, a := range p.axes {
			p.shape = append(p.shape, a.n)
		}
	}
	p.counted()
}

// counted requires that all elements were printed.
func (p *printed) counted() {
	if n, err := tensor.NumElems(p.shape); err != nil {
		p.fail("%w", err)
	} else if n != p.read {
		p.fail("shape %s has %d elements, %d are printed", tensor.FormatShape(p.shape), n, p.read)
	}
}

// place finds the places of values of which MAX prints the first and the last three of an axis. All
// axes but the last two count as one list of matrices, and a matrix has a list around each row.
func (p *printed) place() {
	if n, err := tensor.NumElems(p.shape); err != nil || n == 0 { // then nothing is known of the brackets
		p.counted()
		return
	}
	sizes := append(slices.Repeat([]int{1}, max(0, 2-len(p.shape))), p.shape...)
	for i := range len(sizes) - 3 {
		sizes[i], sizes[i+1] = 1, sizes[i]*sizes[i+1]
	}
	fits := p.leaf == len(sizes) && slices.EqualFunc(p.axes, sizes, func(a axis, size int) bool {
		return a.n == size && !a.summary || a.n == 2*edge && a.summary && size > a.n
	})
	if !fits {
		p.fail("%d elements are in brackets that are not those of shape %s: lines are missing or belong to another tensor",
			p.read, tensor.FormatShape(p.shape))
	}
	if p.err != nil {
		return
	}
	for i, k := range p.Known {
		at, step := 0, 1
		for d, size := range slices.Backward(sizes) {
			a := p.axes[d]
			place := k % a.n
			if a.summary && place >= edge {
				place += size - a.n
			}
			at, step, k = at+place*step, step*size, k/a.n
		}
		p.Known[i] = at
	}
}

// attributes reads ", dtype=f32, shape=[2,3])". The word for the shape is MAX's, size is torch's,
// which names only a type that is not the default for such values.
func (p *printed) attributes() {
	p.dtype = tensor.I64
	switch {
	case p.isBool:
		p.dtype = tensor.Bool
	case p.isFloat || p.read == 0:
		p.dtype = tensor.F32
	}
	dtype := ""
	for word := p.word(); p.err == nil && word != ")"; word = p.word() {
		key, eq, value := p.word(), p.word(), p.word()
		if word != "," || eq != "=" {
			p.fail("%q instead of %q or %q", word+key+eq, ", dtype=…", ")")
		}
		switch key {
		case "dtype":
			dtype = value
		case "shape", "size":
			p.corners = key == "shape"
			p.sizes(value)
		case "device", "grad_fn", "requires_grad":
		default:
			p.fail("unknown attribute %.40q", key)
		}
	}
	p.typed(dtype)
}

// typed sets the type that was printed; MAX always prints one, by the names of MLIR: f32, bf16, si64, f8E4M3FN.
func (p *printed) typed(name string) {
	if name != "" || p.corners || p.Relative {
		if rest, ok := strings.CutPrefix(name, "f8E"); ok {
			name = "float8_e" + rest
		}
		var err error
		if p.dtype, err = tensor.ParseDType(name); err != nil {
			p.fail("%w", err)
		}
	}
	if !p.dtype.IsFloat() {
		p.Decimals = 0
	}
}

// sizes reads "[2,3]" or "(2, 3)", of which open is the first word.
func (p *printed) sizes(open string) {
	if p.shape = []int{}; open != "[" && open != "(" {
		p.fail("%.40q is not a shape", open)
	}
	for word := p.word(); p.err == nil && word != "]" && word != ")"; word = p.word() {
		if word != "," {
			p.addSize(word)
		}
	}
}

func (p *printed) addSize(s string) {
	d, err := strconv.ParseUint(s, 10, strconv.IntSize-1)
	if err != nil {
		p.fail("%.40q is not the size of an axis", s)
	}
	p.shape = append(p.shape, int(d))
}

// list reads a list after its bracket. All of one depth must have the same length.
func (p *printed) list(depth int) {
	if depth >= tensor.MaxRank {
		p.fail("more than %d brackets", tensor.MaxRank)
	}
	if depth == len(p.axes) {
		p.axes = append(p.axes, axis{n: -1})
	}
	var a axis
	for p.err == nil {
		switch word := p.word(); {
		case word == ",":
			continue
		case word == "..." && a.n == edge && !a.summary:
			a.summary = true
			continue
		case word == "]":
			if other := p.axes[depth]; other.n >= 0 && other != a {
				p.fail(ragged)
			}
			p.axes[depth] = a
			return
		case word == "[":
			p.list(depth + 1)
		default:
			p.value(word, depth+1)
		}
		a.n++
	}
}

// value reads an element. Of which digits are missing nothing is known: MAX cuts numbers, and what
// is cut first is the exponent, if there is one.
func (p *printed) value(word string, depth int) {
	cut := len(word) >= maxNumber && strings.Trim(word, "+-.eE0123456789") == "" && (p.Relative || !strings.Contains(word, "."))
	x := 0.0
	switch lower := strings.ToLower(word); {
	case lower == "true" || lower == "false":
		p.isBool = true
		if lower == "true" {
			x = 1
		}
	case cut:
		p.isFloat = true // no integer has that many digits
	default:
		var err error
		if x, err = strconv.ParseFloat(word, 64); err != nil || strings.ContainsAny(word, "xXpP_") { // hexadecimal forms are not printed
			p.fail("element %d: %.40q is not a number", p.read, word)
		}
		p.isFloat = p.isFloat || strings.ContainsAny(word, ".eEnN")
		if _, decimals, ok := strings.Cut(lower, "."); ok {
			decimals, _, _ = strings.Cut(decimals, "e")
			p.Decimals = max(p.Decimals, len(decimals))
		}
	}
	if p.leaf < 0 {
		p.leaf = depth
	}
	if p.leaf != depth {
		p.fail(ragged)
	}
	if !cut {
		p.Known, p.values = append(p.Known, p.read), append(p.values, x)
	}
	p.read++
}

// tensor makes a tensor of the values. Narrow floats become float32, which rounds less than the log does.
func (p *printed) tensor() *tensor.Tensor {
	n, err := tensor.NumElems(p.shape)
	if err == nil && n > maxPrinted {
		err = fmt.Errorf("%w: %s%s has too many elements for a log: dump it to a file", tensor.ErrUnsupported, p.dtype, tensor.FormatShape(p.shape))
	}
	if err != nil {
		p.fail("%w", err)
	}
	if p.err != nil {
		return nil
	}
	d := p.dtype
	if d.IsFloat() && d != tensor.F64 {
		d = tensor.F32
	}
	size := d.Size()
	data, element := make([]byte, n*size), make([]byte, 8)
	for i, at := range p.Known {
		binary.LittleEndian.PutUint64(element, bitsOf(p.values[i], d))
		copy(data[at*size:], element[:size])
	}
	t, err := tensor.New(d, p.shape, data)
	if err != nil {
		p.fail("%w", err)
	}
	return t
}

// bitsOf returns an element of a type as its lowest bits. What is more than 64 bits hold, as
// rounding has it, is the most that they do.
func bitsOf(x float64, d tensor.DType) uint64 {
	const largest = 1<<63 - 1<<10 // float64 below 2^63
	switch {
	case d == tensor.F64:
		return math.Float64bits(x)
	case d == tensor.F32:
		return uint64(math.Float32bits(float32(x)))
	case d == tensor.U64:
		return uint64(min(x, 2*largest))
	}
	return uint64(int64(min(x, largest)))
}

// word returns the next bracket, comma or equal sign, or what stands between them, of this line or
// of those that follow; "" where something is wrong.
func (p *printed) word() string {
	for p.err == nil {
		p.rest = strings.TrimLeft(p.rest, " \t")
		if p.rest != "" {
			n := strings.IndexAny(p.rest, "()[],= \t")
			if n < 0 {
				n = len(p.rest)
			}
			word := p.rest[:max(n, 1)]
			p.rest = p.rest[len(word):]
			return word
		}
		if p.Relative || !p.lines.next() {
			p.fail("%w: the log ends within the tensor", tensor.ErrTruncated)
			break
		}
		p.rest = p.lines.text
		if _, _, again := begin(p.rest); again {
			p.lines.unread = true
			p.fail("%w: line %d begins another tensor within it", tensor.ErrTruncated, p.lines.number)
		}
		if p.size += len(p.rest); p.size >= maxText {
			p.fail(tooLong, maxText)
		}
	}
	return ""
}

const (
	ragged  = "the lists are of different lengths: lines are missing or belong to another tensor"
	tooLong = "more than %d bytes of text: print less, or save files (BINARY_MAX_CHECKPOINT)"
)
