package torchpt_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/tensortest"
	"github.com/goparity/goparity/tensor/torchpt"
)

// member is a record of a handmade archive.
type member struct {
	name   string
	data   string
	method uint16
	edit   func(h *zip.FileHeader) // for false headers
	raw    bool                    // data is compressed already
}

func archiveOf(t testing.TB, members ...member) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: m.method}
		create := z.CreateHeader
		if m.edit != nil || m.raw {
			h.CompressedSize64, h.UncompressedSize64 = uint64(len(m.data)), uint64(len(m.data))
			if m.edit != nil {
				m.edit(h)
			}
			create = z.CreateRaw
		}
		w, err := create(h)
		require.NoError(t, err)
		_, err = w.Write([]byte(m.data))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.String()
}

// pickled makes an archive with this pickle and four float32 elements as storage 0.
func pickled(t testing.TB, body string) []byte {
	return []byte(archiveOf(t, member{name: "a/data.pkl", data: "\x80\x02" + body + "."},
		member{name: "a/data/0", data: strings.Repeat("\x00\x00\x80\x3f", 4)}))
}

func unicode(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func integer(n int64) string {
	return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func integers(n ...int64) string {
	s := "("
	for _, v := range n {
		s += integer(v)
	}
	return s + "t"
}

func storageOf(class, key string, numel int64) string {
	return "(" + unicode("storage") + "ctorch\n" + class + "\n" + unicode(key) + unicode("cpu") + integer(numel) + "tQ"
}

const hooks = "\x89ccollections\nOrderedDict\n)R"

func tensorOf(storage string, offset int64, shape, strides string) string {
	return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + integer(offset) + shape + strides + hooks + "tR"
}

// good pickles a tensor of four ones.
func good() string {
	return tensorOf(storageOf("FloatStorage", "0", 4), 0, integers(4), integers(1))
}

// row is a row of a table of pickles, or of files.
type row struct{ name, data, reason string }

// check decodes files, each of which may allocate limit bytes in all.
func check(t *testing.T, rows []row, limit uint64, file func(data string) []byte) {
	t.Helper()
	decode := func(name string, data []byte) (*tensor.File, error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, err := torchpt.Decode(name, data)
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, limit, "bytes allocated for a file of %d", len(data))
		if err != nil {
			assert.Less(t, len(err.Error()), 1000)
		}
		return f, err
	}
	var all []tensortest.Row
	for _, r := range rows {
		all = append(all, tensortest.Row{Name: r.name, Data: file(r.data), Reason: r.reason})
	}
	tensortest.Check(t, decode, all)
}

func asIs(data string) []byte { return []byte(data) }

func TestHandmadePickles(t *testing.T) {
	four := storageOf("FloatStorage", "0", 4)
	rows := []row{
		{"plain", good(), "the rows below differ from this one in one thing"},
		{"size class", tensorOf(four, 0, "ctorch\nSize\n"+integers(2, 2)+"\x85R", integers(2, 1)), "torch.Size is a tuple"},
		{"expanded", tensorOf(four, 0, integers(1000, 4), integers(0, 1)), "stride 0 repeats"},
		{"python 2 string", "}U\x01a" + good() + "s", "SHORT_BINSTRING"},
		{"nested 900", strings.Repeat("]", 900) + good() + strings.Repeat("a", 900), "legal depth"},

		{"offset outside", tensorOf(four, 5, integers(1), integers(1)), "would read other bytes"},
		{"last element overflows", tensorOf(four, 0, integers(2, 2), integers(1<<62, 1<<62)), "2^63"},
		{"negative offset", tensorOf(four, -1, integers(1), integers(1)), "none negative"},
		{"negative offset in one byte", strings.Replace(good(), "Q"+integer(0), "Q\x8a\x01\xff", 1), "the sign of a short LONG1"},
		{"strides of another rank", tensorOf(four, 0, integers(2, 2), integers(1)), "size and stride"},
		{"storage is a number", tensorOf(integer(4), 0, integers(4), integers(1)), "made of (4,"},
		{"storage too large", tensorOf(storageOf("FloatStorage", "0", 5), 0, integers(4), integers(1)),
			"16 bytes, but the pickle declares 5 elements of float32"},
		{"storage missing", tensorOf(storageOf("FloatStorage", "1", 4), 0, integers(4), integers(1)), "no such record"},
		{"storage of two types", "]" + good() + "a" + tensorOf(storageOf("IntStorage", "0", 4), 0, integers(4), integers(1)) + "a",
			"torch never writes it"},
		{"quantised storage", tensorOf(storageOf("QInt8Storage", "0", 16), 0, integers(4), integers(1)), "QInt8Storage"},
		{"meta", tensorOf(strings.Replace(four, "\x03\x00\x00\x00cpu", "\x04\x00\x00\x00meta", 1), 0, integers(4), integers(1)),
			"meta device"},
		{"conjugated", strings.Replace(good(), hooks+"t", hooks+"}"+unicode("conj")+"\x88s"+"t", 1), "resolve_conj"},
		{"bit not set", strings.Replace(good(), hooks+"t", hooks+"}"+unicode("conj")+"\x89s"+"t", 1), "metadata that says nothing"},
		{"no arguments", "ctorch._utils\n_rebuild_tensor_v2\n)R", "0 arguments"},
		{"wrapped in itself", "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n_rebuild_from_type_v2\nctorch\nTensor\n(ctorch._tensor\n_rebuild_from_type_v2\ntNtR",
			"torch never nests it"},

		{"parameter of a number", "ctorch._utils\n_rebuild_parameter\n(K\x01\x89NtR", "made of 1, want a tensor"},
		{"metadata is a list", strings.Replace(good(), hooks+"t", hooks+"]t", 1), "metadata of a tensor is a list"},
		{"metadata of a backend", strings.Replace(good(), hooks+"t", hooks+"}"+unicode("layout")+"\x88st", 1), "by metadata (the string"},
		{"v3 without dtype", "ctorch._utils\n_rebuild_tensor_v3\n(" + four + integer(0) + integers(4) + integers(1) + hooks + "NtR",
			"dtype of a tensor is None"},
		{"ordered dict of python 2", "ccollections\nOrderedDict\n]\x85R", "pairs as an argument"},
		{"size of a number", "ctorch\nSize\nK\x01\x85R", "want a tuple"},
		{"set of a number", "c__builtin__\nset\nK\x01\x85R", "want a list"},
		{"cuda storage class", "]" + strings.Replace(good(), "ctorch\nFloatStorage", "ctorch.cuda\nFloatStorage", 1) + "a",
			"torch before 0.4"},
		{"mark taken back", "(0" + good(), "POP on a mark"},
		{"os.system", "cposix\nsystem\n" + unicode("true") + "\x85R", "no code runs"},
		{"user's class", "c__main__\nNet\n)\x81}b", "refused at its name"},
		{"model output", "ctransformers.modeling_outputs\nBaseModelOutput\n)R", "the usual way to get one"},

		{"empty", "", "want 1"},
		{"left over", "NN", "left over"},
		{"unknown opcode", "\xff", "an index of 255 in a table of 151"},
		{"protocol 9", "\x80\x09", "protocol 9"},
		{"empty LONG1", "\x8a\x00", "an empty integer is 0"},
		{"long LONG1", "\x8a\xff" + strings.Repeat("\x7f", 255), "a large integer"},
		{"huge LONG4", "\x8b\xff\xff\xff\xff", "no allocation of what is not there"},
		{"huge FRAME", "\x95\x00\x00\x00\x00\x08\x00\x00\x00", "32 GiB"},
		{"memo never set", "h\x05", "memo 5"},
		{"far memo", "Nr\xff\xff\xff\xff0j\xff\xff\xff\xff", "an index is not an allocation"},
		{"million marks", strings.Repeat("(", 1_000_000), "deeper than 1000"},
		{"deep lists", strings.Repeat("]", 100_000) + good() + strings.Repeat("a", 100_000), "the walk is bounded"},
		{"many values", strings.Repeat("N0", 4<<20+1), "more than 4194304 values"},
		{"append to None", "NNa", "want a list"},
		{"setitems odd", "}(Nu", "1 keys and values"},
		{"appends without mark", "]e", "no mark"},
		{"build of a tensor", good() + "}b", "state for a tensor"},
		{"call of None", "N)R", "a call of None"},
		{"call without tuple", "ctorch\nSize\nNR", "and a tuple"},
		{"persistent number", "K\x01Q", "a persistent id is 1"},
		{"name without end", "c" + strings.Repeat("x", 5000), "a name of more than 1024 bytes"},
		{"global of numbers", "K\x01K\x02\x93", "1 and 2, want two strings"},
		{"cycle of dicts", "}q\x00" + unicode("a") + good() + "s" + unicode("self") + "h\x00s", "contains itself"},
		{"memo bomb", memoBomb(40), "2^40 ways to one tensor"},
		{"name bomb", nameBomb(), "a thousand tensors with names of a megabyte"},
	}
	check(t, rows, 256<<20, func(data string) []byte { return pickled(t, data) })
}

func TestHandmadePicklesOf64Bits(t *testing.T) {
	if bits.UintSize < 64 {
		t.Skip("here these numbers are refused as they are read")
	}
	four := storageOf("FloatStorage", "0", 4)
	rows := []row{
		{"empty of a huge other axis", tensorOf(four, 0, integers(1<<40, 0), integers(1, 1)), "no elements"},
		{"product overflows", tensorOf(four, 0, integers(1<<32, 1<<32, 1<<32), integers(0, 0, 0)), "2^96 elements"},
		{"absurd expansion", tensorOf(four, 0, integers(1<<40), integers(0)), "a comparison would not end"},
		{"storage overflows", tensorOf(storageOf("DoubleStorage", "0", 1<<61), 0, integers(3), integers(1)), "8 × 2^61 = 0 in 64 bits"},
	}
	check(t, rows, 256<<20, func(data string) []byte { return pickled(t, data) })
}

// memoBomb nests lists, each of which contains the previous one twice.
func memoBomb(levels int) string {
	var b strings.Builder
	b.WriteString("]" + good() + "aq\x000")
	for i := range levels {
		fmt.Fprintf(&b, "](h%ch%ceq%c0", i, i, i+1)
	}
	fmt.Fprintf(&b, "h%c", levels)
	return b.String()
}

// nameBomb has one tensor a thousand times, under a key of a megabyte.
func nameBomb() string {
	return "}" + unicode(strings.Repeat("x", 1<<20)) + "](" + good() + "q\x00" + strings.Repeat("h\x00", 1000) + "es"
}

func TestHandmadeArchives(t *testing.T) {
	pickle := "\x80\x02" + good() + "."
	ones := strings.Repeat("\x00\x00\x80\x3f", 4)
	data := member{name: "a/data/0", data: ones}
	pkl := member{name: "a/data.pkl", data: pickle}
	whole := archiveOf(t, pkl, data)
	bomb := func() member {
		// 8 MiB of zeros in 8 KiB, for a storage of four elements.
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w, err := z.Create("x")
		require.NoError(t, err)
		_, err = w.Write(make([]byte, 8<<20))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		require.NoError(t, err)
		at, err := r.File[0].DataOffset()
		require.NoError(t, err)
		return member{name: "a/data/0", data: string(b.Bytes()[at:][:r.File[0].CompressedSize64]),
			method: zip.Deflate, raw: true}
	}()
	sized := func(m member, uncompressed uint64) member {
		m.edit = func(h *zip.FileHeader) { h.UncompressedSize64 = uncompressed }
		return m
	}
	deflated := member{name: "a/data/0", data: ones, method: zip.Deflate}
	// The directory entries of two records point to one local header.
	overlapping := []byte(whole)
	second := bytes.LastIndex(overlapping, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(overlapping[second+42:], 0)
	rows := []row{
		{"plain", whole, "the rows below differ from this one"},
		{"deflated", archiveOf(t, pkl, deflated), "other tools compress"},
		{"folder entries", archiveOf(t, member{name: "a/"}, pkl, member{name: "a/data/"}, data), "zip -r writes them"},
		{"big-endian", archiveOf(t, pkl, member{name: "a/byteorder", data: "big"}, data), ""},
		{"byte order unknown", archiveOf(t, pkl, member{name: "a/byteorder", data: "middle"}, data), "middle"},
		{"not torch", archiveOf(t, member{name: "a/readme", data: "x"}), "not written by torch.save"},
		{"npz", archiveOf(t, member{name: "x.npy", data: "x"}), "the likely mistake"},
		{"other prefix", archiveOf(t, pkl, member{name: "b/data/0", data: ones}), "torch takes the prefix of the first record"},
		{"encrypted", archiveOf(t, member{name: "a/data.pkl", data: pickle, edit: func(h *zip.FileHeader) { h.Flags |= 1 }}, data),
			"encrypted"},
		{"bzip2", archiveOf(t, member{name: "a/data.pkl", data: pickle, edit: func(h *zip.FileHeader) { h.Method = 12 }}, data),
			"method 12"},
		{"two of one name", archiveOf(t, pkl, data, data), "which one would it be?"},
		{"overlapping", string(overlapping), "overlaps"},
		{"beyond the file", archiveOf(t, pkl, member{name: "a/data/0", data: ones, edit: func(h *zip.FileHeader) { h.CompressedSize64, h.UncompressedSize64 = 1<<40, 1<<40 }}),
			"1099511627776 bytes"},
		{"two sizes", archiveOf(t, pkl, sized(data, 4)), "two sizes"},
		{"zip bomb", archiveOf(t, pkl, sized(bomb, 8<<20)), "judged by what the tensor needs before a byte is inflated"},
		{"zip bomb that lies", archiveOf(t, pkl, sized(bomb, 16)), "it stops after the promised bytes"},
		{"impossible ratio", archiveOf(t, sized(member{name: "a/data.pkl", data: pickle, method: zip.Deflate}, 60<<20), data),
			"no allocation on a promise"},
		{"inflates to less", archiveOf(t, pkl, sized(member{name: "a/data/0", data: "\x03\x00", method: zip.Deflate}, 16)),
			"promises 16 bytes, but there are 0"},
		{"inflated beyond the cap", archiveOf(t, pkl, sized(member{name: "a/data/0", data: strings.Repeat("x", 4<<20), method: zip.Deflate}, 2<<30)),
			"more than 1073741824"},
		{"after other bytes", "PK\x03\x04 something else" + whole, "could be an archive in the tensor of a truncated one"},
		{"archive in a truncated archive", truncatedAround(t, whole), "the inner one must not be taken for the file"},
		{"data after the pickle", archiveOf(t, member{name: "a/data.pkl", data: pickle + "N."}, data), "follow the end"},
		{"empty archive", archiveOf(t), ""},
		{"zeros", strings.Repeat("\x00", 1000), "a crash leaves such files"},
		{"other pickle", "\x80\x02N.", "not one of torch.save"},
	}
	check(t, rows, 1<<20, asIs)
}

// truncatedAround stores an archive in a tensor of another one, and cuts that one off after it.
func truncatedAround(t *testing.T, inner string) string {
	outer := archiveOf(t, member{name: "b/data/0", data: inner}, member{name: "b/data.pkl", data: "x"})
	at := strings.Index(outer, inner)
	require.Positive(t, at)
	return outer[:at+len(inner)]
}

const flatHead = "\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." + "\x80\x02M\xe9\x03." + "\x80\x02}."

func TestHandmadeFlatFiles(t *testing.T) {
	object := "\x80\x02" + good() + "."
	keys := "\x80\x02](" + unicode("0") + "e."
	payload := "\x04\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("\x00\x00\x80\x3f", 4)
	rows := []row{
		{"plain", flatHead + object + keys + payload, "the rows below differ from this one"},
		{"storage view", flatHead + strings.Replace(object, "tQ", "("+unicode("view")+integer(2)+integer(2)+"ttQ", 1) + keys + payload,
			"it wrote views of storages"},
		{"other version", strings.Replace(flatHead, "M\xe9\x03", "M\xea\x03", 1) + object + keys + payload, "version is 1002"},
		{"length differs", flatHead + object + keys + "\x05" + payload[1:] + "1234", "has 5 elements, but the pickle declares 4"},
		{"cut", flatHead + object + keys + payload[:20], "12 bytes more"},
		{"cut before the length", flatHead + object + keys + payload[:7], "ends before storage"},
		{"two objects", flatHead + object + keys + payload + flatHead, "the second one would be ignored silently"},
		{"key of no tensor", flatHead + object + "\x80\x02](" + unicode("0") + unicode("1") + "e." + payload, `"1"`},
		{"no keys", flatHead + object + "\x80\x02].", `no storage "0"`},
		{"keys are None", flatHead + object + "\x80\x02N.", "want a list"},
		{"keys are numbers", flatHead + object + "\x80\x02]K\x00a." + payload, "want a string"},
	}
	check(t, rows, 1<<20, asIs)
}
