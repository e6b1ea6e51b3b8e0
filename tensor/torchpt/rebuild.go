package torchpt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

type (
	// function makes a value from the arguments of a call.
	function func(u *unpickler, args tuple) any

	// class is the class of a storage, or another class that is only named.
	class struct {
		name string
		elem tensor.DType // of a storage; uint8 for an UntypedStorage
	}

	// storage is a reference to raw elements elsewhere in the file.
	storage struct {
		key   string
		dtype tensor.DType
		numel int
	}

	// dense is a tensor whose bytes are not yet known. Shape, strides and offset are in elements of
	// dtype.
	dense struct {
		storage        *storage
		dtype          tensor.DType
		offset         int
		shape, strides []int
	}
)

func (s *storage) String() string { return fmt.Sprintf("%d elements of %s", s.numel, s.dtype) }

// bytes returns the size that the pickle declares. ok is false if so many bytes cannot be
// addressed.
func (s *storage) bytes() (n int, ok bool) {
	n, err := tensor.NumBytes(s.dtype, []int{s.numel})
	return n, err == nil
}

// storageClasses are torch's typed storages, and the types of their elements.
var storageClasses = map[string]string{
	"FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
	"LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
	"ByteStorage": "uint8", "BoolStorage": "bool",
	"ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
	"QInt8Storage": "qint8", "QUInt8Storage": "quint8", "QInt32Storage": "qint32", "QUInt4x2Storage": "quint4x2",
	"QUInt2x4Storage": "quint2x4",
}

// torchDType finds an element type by torch's exact name.
func torchDType(name string) (tensor.DType, bool) {
	d, err := tensor.ParseDType(name)
	return d, err == nil && d.String() == name
}

// functions has everything that a pickle may call.
var functions = map[string]function{
	"torch._utils._rebuild_tensor_v2":            rebuild(false),
	"torch._utils._rebuild_tensor_v3":            rebuild(true),
	"torch._utils._rebuild_parameter":            rebuildParameter,
	"torch._utils._rebuild_parameter_with_state": rebuildParameter,
	"torch._tensor._rebuild_from_type_v2":        rebuildPlain,
	"collections.OrderedDict":                    makeOrderedDict,
	"torch.Size":                                 makeSize,
	"torch.device":                               makeLeaf,
	"_codecs.encode":                             makeLeaf, // bytes in protocol 2
	"builtins.bytes":                             makeLeaf,
	"builtins.bytearray":                         makeLeaf,
	"builtins.complex":                           makeLeaf,
	"builtins.set":                               makeSet,
	"builtins.frozenset":                         makeSet,
}

// plainTypes are the types of tensors that _rebuild_from_type_v2 only wraps, with Python attributes
// that are not data.
var plainTypes = map[string]bool{"torch.Tensor": true, "torch._tensor.Tensor": true,
	"torch.nn.parameter.Parameter": true, "torch.nn.parameter.Buffer": true}

// refused explains names that contain a word, and says what to save instead. The last word is in all names.
var refused = []struct{ word, what string }{
	{"_rebuild_sparse", "a sparse tensor: save its to_dense()"},
	{"_rebuild_qtensor", "a quantised tensor: save its dequantize()"},
	{"_rebuild_nested", "a nested tensor: save the list of its unbind()"},
	{"numpy.", "a numpy array or number: save torch.from_numpy(a) or a.item(), or use np.save"},
	{"torch.nn.", "a module: save its state_dict()"},
	{"transformers.models.", "a module: save its state_dict()"},
	{"Output", "a class: save dict(x) or tuple(x), or the tensors one by one"},
	{"torch.return_types.", "a class: save dict(x) or tuple(x), or the tensors one by one"},
	{"torch.complex", "complex, which cannot be compared: save torch.view_as_real(x)"},
	{"torch.Complex", "complex, which cannot be compared: save torch.view_as_real(x)"},
	{"torch.Q", "quantised, which cannot be compared: save x.dequantize()"},
	{"torch.q", "quantised, which cannot be compared: save x.dequantize()"},
	{"", "which is not loaded: save plain tensors that were computed, on the CPU, in a dict, list or tuple, or model.state_dict(); of elements that cannot be " +
		"compared x.float() or x.view(torch.uint8)"},
}

// global pushes the value of a name in the pickle, or refuses the name.
func (u *unpickler) global(module, name string) {
	switch module {
	case "__builtin__": // Python 2, and protocol 2
		module = "builtins"
	case "torch.cuda":
		module = "torch"
	case "torch.tensor": // torch before 1.9
		module = "torch._tensor"
	}
	full := module + "." + name
	elem, isStorage := storageClasses[name]
	d, isDType := torchDType(cmp.Or(elem, name))
	switch f, ok := functions[full]; {
	case ok:
		u.push(f)
	case plainTypes[full]:
		u.push(class{name: full})
	case full == "torch.storage.UntypedStorage" || full == "torch.UntypedStorage":
		u.push(class{full, tensor.U8})
	case module == "torch" && isDType && isStorage:
		u.push(class{full, d})
	case module == "torch" && isDType:
		u.push(d)
	default:
		i := slices.IndexFunc(refused, func(r struct{ word, what string }) bool { return strings.Contains(full, r.word) })
		u.unsupported("the file has %.200q, %s", full, refused[i].what)
	}
}

// persistent makes a storage from ("storage", class, key, location, number of elements) and, in old
// flat files, None.
func (u *unpickler) persistent(v any) any {
	id, _ := v.(tuple)
	u.want(len(id) == 5 || len(id) == 6, "a persistent id is %s, want a tuple of 5 or 6", describe(v))
	kind, _ := id[0].(string)
	cls, _ := id[1].(class)
	key, isKey := id[2].(string)
	location, _ := id[3].(string)
	numel, isInt := asInt(id[4])
	if kind != "storage" || cls.elem == tensor.Invalid || !isKey || !isInt {
		u.corrupt("a persistent id is (%s, %s, %s, %s, %s), want \"storage\", its class, key, "+
			"location and number of elements",
			describe(id[0]), describe(id[1]), describe(id[2]), describe(id[3]), describe(id[4]))
	}
	u.supports(location != "meta",
		"storage %.40q is on the meta device and has no values: save it after it was computed", key)
	s := &storage{key: key, dtype: cls.elem, numel: numel}
	if first, ok := u.storages[key]; ok && numel > 0 && first.numel > 0 &&
		(first.numel != numel || first.dtype != cls.elem) {
		u.corrupt("storage %.40q is declared as %s and as %s", key, first, s)
	}
	if len(id) == 6 && id[5] != nil {
		u.unsupported("storage %.40q is a view of another, as torch before 0.4 wrote it: load the file with torch and save it again", key)
	}
	u.storages[key] = s
	return s
}

// rebuild takes storage, offset, size, stride, requires_grad, hooks, an element type if the storage's class has none,
// and metadata if the conj or neg bit is set.
func rebuild(typed bool) function {
	least := 6
	if typed {
		least = 7
	}
	return func(u *unpickler, args tuple) any {
		u.arguments("a tensor", args, least, least+1)
		s, isStorage := args[0].(*storage)
		offset, isInt := asInt(args[1])
		shape, isShape := asInts(args[2])
		strides, isStrides := asInts(args[3])
		if !isStorage || !isInt || !isShape || !isStrides || len(shape) != len(strides) {
			u.corrupt("a tensor is made of (%s, %s, %s, %s), want storage, offset, size and stride, none negative",
				describe(args[0]), describe(args[1]), describe(args[2]), describe(args[3]))
		}
		t := &dense{storage: s, dtype: s.dtype, offset: offset, shape: shape, strides: strides}
		if typed {
			d, ok := args[6].(tensor.DType)
			if !ok {
				u.corrupt("the dtype of a tensor is %s", describe(args[6]))
			}
			t.dtype = d
		}
		u.metadata(args[least:])
		return t
	}
}

// arguments requires from least to most arguments.
func (u *unpickler) arguments(of string, args tuple, least, most int) {
	u.want(len(args) >= least && len(args) <= most,
		"%s has %d arguments, want %d to %d", of, len(args), least, most)
}

func asInts(v any) ([]int, bool) {
	t, ok := v.(tuple)
	if !ok {
		return nil, false
	}
	out := make([]int, len(t))
	for i, e := range t {
		if out[i], ok = asInt(e); !ok {
			return nil, false
		}
	}
	return out, true
}

// metadata refuses tensors whose values are not their bytes: conjugated and negated views.
func (u *unpickler) metadata(args tuple) {
	if len(args) == 0 || args[0] == nil {
		return
	}
	d, ok := args[0].(*dict)
	if !ok {
		u.corrupt("the metadata of a tensor is %s, want a dict", describe(args[0]))
	}
	for i := 0; i < len(d.items); i += 2 {
		if d.items[i+1] != any(false) {
			u.unsupported("the file has a conjugated or negated view, or another one by metadata (%s): save its resolve_conj().resolve_neg()",
				describe(d.items[i]))
		}
	}
}

// rebuildParameter takes a tensor, requires_grad, hooks and, optionally, Python attributes.
func rebuildParameter(u *unpickler, args tuple) any {
	u.arguments("_rebuild_parameter", args, 3, 4)
	t, ok := args[0].(*dense)
	u.want(ok, "a parameter is made of %s, want a tensor", describe(args[0]))
	return t
}

// rebuildPlain makes a plain tensor with Python attributes. It takes a function, the type of its
// result, its arguments, and the attributes.
func rebuildPlain(u *unpickler, args tuple) any {
	u.arguments("_rebuild_from_type_v2", args, 4, 4)
	f, isFunction := args[0].(function)
	_, isClass := args[1].(class) // other types are refused by name
	inner, isTuple := args[2].(tuple)
	if isTuple && len(inner) > 0 {
		_, isNested := inner[0].(function)
		isTuple = !isNested
	}
	if !isFunction || !isClass || !isTuple {
		u.corrupt("a tensor with attributes is made of (%s, %s, %s), want function, type and arguments",
			describe(args[0]), describe(args[1]), describe(args[2]))
	}
	t, ok := f(u, inner).(*dense)
	u.want(ok, "a tensor with attributes is made by a function that makes no tensor")
	return t
}

func makeOrderedDict(u *unpickler, args tuple) any {
	u.supports(len(args) == 0, "an OrderedDict of Python 2: load the file with torch and save it again")
	return &dict{}
}

func makeSize(u *unpickler, args tuple) any {
	u.arguments("torch.Size", args, 1, 1)
	t, ok := args[0].(tuple)
	u.want(ok, "torch.Size is made of %s, want a tuple", describe(args[0]))
	return t
}

func makeSet(u *unpickler, args tuple) any {
	u.arguments("a set", args, 0, 1)
	s := &list{set: true}
	if len(args) == 1 {
		l, ok := args[0].(*list)
		u.want(ok, "a set is made of %s, want a list", describe(args[0]))
		s.items = l.items
	}
	return s
}

func makeLeaf(*unpickler, tuple) any { return leaf{} }
