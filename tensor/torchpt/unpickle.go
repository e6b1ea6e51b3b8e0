package torchpt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

const (
	maxDepth  = 1000    // open marks while unpickling, and nesting of containers
	maxValues = 4 << 20 // values that a pickle may make, including those in its memo
	maxLine   = 1024    // bytes of a module or class name
)

// A value is one of the types below, or nil (None), a bool, an int64, a string, a function, a class
// or a dtype.
type (
	tuple []any
	list  struct {
		items []any
		set   bool // a set, which has no order
	}
	dict struct {
		items []any // key, value, key, value, …
	}
	// long is an integer that does not fit an int64: its two's complement, least significant byte
	// first.
	long string
	// leaf is a value that is ignored because it has no tensor: a float, bytes, a device.
	leaf struct{}
)

// unpickler runs one pickle.
type unpickler struct {
	src    []byte
	pos    int   // of the next byte
	at     int   // of the current opcode
	offset int64 // of src in the file; −1 if src was inflated
	member string

	stack  []any
	marks  []int // lengths of the stack
	memo   map[uint32]any
	values int // made so far

	storages map[string]*storage // everything that the pickle refers to, by key
}

func newUnpickler(src []byte, offset int64, member string) *unpickler {
	return &unpickler{src: src, offset: offset, member: member, memo: map[uint32]any{}, storages: map[string]*storage{}}
}

// run returns the object of the pickle. After it, pos is the end of the pickle.
func (u *unpickler) run() any {
	for {
		u.at = u.pos
		op := byte(u.uint(1))
		if op == '.' {
			v := u.pop()
			u.want(len(u.stack) == 0 && len(u.marks) == 0,
				"the pickle ends with %d values left over", len(u.stack)+len(u.marks))
			return v
		}
		u.want(opcodes[op] != nil, "opcode %#02x is not one that torch.save writes", op)
		opcodes[op](u)
	}
}

// opcodes are those that torch.save writes.
var opcodes = [256]func(u *unpickler){
	// That frame the stream or move the stack.
	0x80: (*unpickler).protocol,                             // PROTO
	0x95: (*unpickler).frame,                                // FRAME
	'(':  (*unpickler).mark,                                 // MARK
	'0':  (*unpickler).drop,                                 // POP
	'1':  func(u *unpickler) { u.popMark() },                // POP_MARK
	'q':  func(u *unpickler) { u.put(uint32(u.uint(1))) },   // BINPUT
	'r':  func(u *unpickler) { u.put(uint32(u.uint(4))) },   // LONG_BINPUT
	0x94: func(u *unpickler) { u.put(uint32(len(u.memo))) }, // MEMOIZE
	'h':  func(u *unpickler) { u.get(uint32(u.uint(1))) },   // BINGET
	'j':  func(u *unpickler) { u.get(uint32(u.uint(4))) },   // LONG_BINGET

	// Values that are in the stream.
	'N':  func(u *unpickler) { u.push(nil) },                        // NONE
	0x88: func(u *unpickler) { u.push(true) },                       // NEWTRUE
	0x89: func(u *unpickler) { u.push(false) },                      // NEWFALSE
	'J':  func(u *unpickler) { u.push(int64(int32(u.uint(4)))) },    // BININT
	'K':  func(u *unpickler) { u.push(int64(u.uint(1))) },           // BININT1
	'M':  func(u *unpickler) { u.push(int64(u.uint(2))) },           // BININT2
	0x8a: func(u *unpickler) { u.push(integer(u.take(u.uint(1)))) }, // LONG1
	0x8b: func(u *unpickler) { u.push(integer(u.take(u.uint(4)))) }, // LONG4
	0x8c: func(u *unpickler) { u.push(string(u.take(u.uint(1)))) },  // SHORT_BINUNICODE
	'U':  func(u *unpickler) { u.push(string(u.take(u.uint(1)))) },  // SHORT_BINSTRING
	'X':  func(u *unpickler) { u.push(string(u.take(u.uint(4)))) },  // BINUNICODE
	'T':  func(u *unpickler) { u.push(string(u.take(u.uint(4)))) },  // BINSTRING
	0x8d: func(u *unpickler) { u.push(string(u.take(u.uint(8)))) },  // BINUNICODE8
	'G':  func(u *unpickler) { u.pass(8) },                          // BINFLOAT
	'C':  func(u *unpickler) { u.pass(u.uint(1)) },                  // SHORT_BINBYTES
	'B':  func(u *unpickler) { u.pass(u.uint(4)) },                  // BINBYTES
	0x8e: func(u *unpickler) { u.pass(u.uint(8)) },                  // BINBYTES8
	0x96: func(u *unpickler) { u.pass(u.uint(8)) },                  // BYTEARRAY8

	// Tuples, lists, sets and dicts, and what fills them.
	')':  func(u *unpickler) { u.push(tuple(nil)) },               // EMPTY_TUPLE
	0x85: func(u *unpickler) { u.push(tuple(u.popN(1))) },         // TUPLE1
	0x86: func(u *unpickler) { u.push(tuple(u.popN(2))) },         // TUPLE2
	0x87: func(u *unpickler) { u.push(tuple(u.popN(3))) },         // TUPLE3
	't':  func(u *unpickler) { u.push(tuple(u.popMark())) },       // TUPLE
	']':  func(u *unpickler) { u.push(&list{}) },                  // EMPTY_LIST
	0x8f: func(u *unpickler) { u.push(&list{set: true}) },         // EMPTY_SET
	0x91: func(u *unpickler) { u.push(&list{u.popMark(), true}) }, // FROZENSET
	'a':  func(u *unpickler) { u.extend(u.popN(1), false) },       // APPEND
	'e':  func(u *unpickler) { u.extend(u.popMark(), false) },     // APPENDS
	0x90: func(u *unpickler) { u.extend(u.popMark(), true) },      // ADDITEMS
	'}':  func(u *unpickler) { u.push(&dict{}) },                  // EMPTY_DICT
	's':  func(u *unpickler) { u.setItems(u.popN(2)) },            // SETITEM
	'u':  func(u *unpickler) { u.setItems(u.popMark()) },          // SETITEMS

	// Globals, calls, and objects from outside the stream.
	'c':  func(u *unpickler) { u.global(u.line(), u.line()) },  // GLOBAL
	0x93: (*unpickler).stackGlobal,                             // STACK_GLOBAL
	'R':  (*unpickler).reduce,                                  // REDUCE
	'b':  (*unpickler).build,                                   // BUILD
	'Q':  func(u *unpickler) { u.push(u.persistent(u.pop())) }, // BINPERSID
}

func (u *unpickler) protocol() {
	if v := u.uint(1); v < 2 || v > 5 {
		u.unsupported("pickle protocol %d: save with pickle_protocol=2", v)
	}
}

func (u *unpickler) frame() {
	if n := u.uint(8); n > uint64(len(u.src)-u.pos) {
		u.fail(tensor.ErrTruncated, "a frame of %d bytes, but %d are left", n, len(u.src)-u.pos)
	}
}

func (u *unpickler) mark() {
	u.supports(len(u.marks) < maxDepth, "the pickle is nested deeper than %d", maxDepth)
	u.marks = append(u.marks, len(u.stack))
}

// drop pops a value, or a mark above all values.
func (u *unpickler) drop() {
	if n := len(u.marks); n > 0 && u.marks[n-1] == len(u.stack) {
		u.marks = u.marks[:n-1]
	} else {
		u.pop()
	}
}

// build drops the state of an OrderedDict, such as the _metadata of a state dict, which has no tensors.
func (u *unpickler) build() {
	u.pop()
	if _, ok := u.top().(*dict); !ok {
		u.corrupt("state for %s, want it for an OrderedDict only", describe(u.top()))
	}
}

// pass pushes a value of n bytes that is ignored.
func (u *unpickler) pass(n uint64) {
	u.take(n)
	u.push(leaf{})
}

func (u *unpickler) stackGlobal() {
	args := u.popN(2)
	module, isString := args[0].(string)
	name, isString2 := args[1].(string)
	u.want(isString && isString2,
		"the name of a global is %s and %s, want two strings", describe(args[0]), describe(args[1]))
	u.global(module, name)
}

func (u *unpickler) reduce() {
	v := u.popN(2)
	f, isFunction := v[0].(function)
	args, isTuple := v[1].(tuple)
	u.want(isFunction && isTuple,
		"a call of %s with %s, want a function and a tuple of arguments", describe(v[0]), describe(v[1]))
	u.push(f(u, args))
}

func (u *unpickler) push(v any) {
	u.count()
	u.stack = append(u.stack, v)
}

// count counts a new value.
func (u *unpickler) count() {
	if u.values++; u.values > maxValues {
		u.unsupported("the pickle has more than %d values: save the tensors with fewer other values", maxValues)
	}
}

// floor returns the length of the stack below the last mark.
func (u *unpickler) floor() int {
	if len(u.marks) == 0 {
		return 0
	}
	return u.marks[len(u.marks)-1]
}

func (u *unpickler) top() any {
	if len(u.stack) <= u.floor() {
		u.corrupt("the stack is empty")
	}
	return u.stack[len(u.stack)-1]
}

func (u *unpickler) pop() any { return u.popN(1)[0] }

// popN pops the last n values.
func (u *unpickler) popN(n int) []any {
	if len(u.stack)-u.floor() < n {
		u.corrupt("the stack has %d values, want %d", len(u.stack)-u.floor(), n)
	}
	return u.cut(len(u.stack) - n)
}

// popMark pops the values above the last mark, and the mark.
func (u *unpickler) popMark() []any {
	n := len(u.marks)
	if n == 0 {
		u.corrupt("there is no mark on the stack")
	}
	at := u.marks[n-1]
	u.marks = u.marks[:n-1]
	return u.cut(at)
}

func (u *unpickler) cut(at int) []any {
	v := slices.Clone(u.stack[at:])
	u.stack = u.stack[:at]
	return v
}

func (u *unpickler) extend(items []any, set bool) {
	l, ok := u.top().(*list)
	u.want(ok && l.set == set, "items for %s, want a list", describe(u.top()))
	l.items = append(l.items, items...)
}

func (u *unpickler) setItems(items []any) {
	d, ok := u.top().(*dict)
	u.want(ok && len(items)%2 == 0,
		"%d keys and values for %s, want pairs for a dict", len(items), describe(u.top()))
	d.items = append(d.items, items...)
}

func (u *unpickler) put(i uint32) {
	u.count()
	u.memo[i] = u.top()
}

func (u *unpickler) get(i uint32) {
	v, ok := u.memo[i]
	if !ok {
		u.corrupt("memo %d was never set", i)
	}
	u.push(v)
}

// take returns the next n bytes of the source, as a view.
func (u *unpickler) take(n uint64) []byte {
	if left := len(u.src) - u.pos; n > uint64(left) {
		u.fail(tensor.ErrTruncated, "the pickle ends: %d bytes are left, want %d", left, n)
	}
	u.pos += int(n)
	return u.src[u.pos-int(n) : u.pos]
}

// uint reads an unsigned number of n bytes, little-endian.
func (u *unpickler) uint(n int) uint64 {
	var b [8]byte
	copy(b[:], u.take(uint64(n)))
	return binary.LittleEndian.Uint64(b[:])
}

func (u *unpickler) line() string {
	window := u.src[u.pos:min(len(u.src), u.pos+maxLine)]
	n := bytes.IndexByte(window, '\n')
	switch {
	case n >= 0:
	case len(window) < maxLine:
		u.fail(tensor.ErrTruncated, "the pickle ends in a name")
	default:
		u.corrupt("a name of more than %d bytes", maxLine)
	}
	u.pos += n + 1
	return string(window[:n])
}

// integer decodes the two's complement of LONG1 and LONG4.
func integer(b []byte) any {
	if len(b) > 8 {
		return long(b)
	}
	var full [8]byte
	if len(b) > 0 && b[len(b)-1]&0x80 != 0 {
		full = [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	copy(full[:], b)
	return int64(binary.LittleEndian.Uint64(full[:]))
}

// asInt returns a value as a number from 0 to the largest int.
func asInt(v any) (int, bool) {
	n, ok := v.(int64)
	if !ok || n < 0 || uint64(n) > math.MaxInt {
		return 0, false
	}
	return int(n), true
}

// want and supports fail unless ok.
func (u *unpickler) want(ok bool, msg string, args ...any) {
	if !ok {
		u.corrupt(msg, args...)
	}
}

func (u *unpickler) supports(ok bool, msg string, args ...any) {
	if !ok {
		u.unsupported(msg, args...)
	}
}

func (u *unpickler) corrupt(msg string, args ...any)     { u.fail(tensor.ErrCorrupt, msg, args...) }
func (u *unpickler) unsupported(msg string, args ...any) { u.fail(tensor.ErrUnsupported, msg, args...) }

// fail is an error at the current opcode.
func (u *unpickler) fail(class error, msg string, args ...any) {
	if u.offset < 0 {
		format.Fail(class, -1, u.member, "byte %d of the inflated record: %s", u.at, fmt.Sprintf(msg, args...))
	}
	format.Fail(class, u.offset+int64(u.at), u.member, msg, args...)
}

// described is a value as messages have it.
type described struct{ value any }

func describe(v any) described { return described{v} }

func (d described) String() string {
	switch v := d.value.(type) {
	case nil:
		return "None"
	case int64:
		return fmt.Sprint(v)
	case long:
		return "a large integer"
	case string:
		return fmt.Sprintf("the string %.40q", v)
	case tuple:
		return fmt.Sprintf("a tuple of %d", len(v))
	case *list:
		if v.set {
			return "a set"
		}
		return "a list"
	case *dict:
		return "a dict"
	case class:
		return v.name
	case tensor.DType:
		return "torch." + v.String()
	case *storage:
		return "a storage"
	case *dense:
		return "a tensor"
	}
	return "another value"
}
