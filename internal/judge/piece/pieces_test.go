package piece_test

import (
	_ "embed"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
)

//go:embed testdata/pieces.txt
var pieces string

// sample is one of testdata/pieces.txt, in which some words are others.
func sample(name string, instead ...string) *program.Piece {
	_, text, ok := strings.Cut(pieces, "\n## "+name+":")
	if !ok {
		panic("no piece " + name)
	}
	text, _, _ = strings.Cut(text, "\n\n")
	_, text, _ = strings.Cut(text, "\n") // what it is
	ids, stacks := map[string]program.ID{"none": program.None}, []string{}
	p := &program.Piece{}
	var q program.Program
	for line := range strings.Lines(strings.NewReplacer(instead...).Replace(text)) {
		results, words, _ := strings.Cut(strings.TrimSpace(line), " = ")
		operator, words, _ := strings.Cut(words, " ")
		o := program.Op{Name: operator, Full: "aten." + operator, Stack: -1, Layer: "layer"}
		for result := range strings.SplitSeq(results, "; ") {
			name, shape, _ := strings.Cut(result, " ")
			ids[name] = program.ID(len(q.Values))
			o.Out, q.Values = append(o.Out, ids[name]), append(q.Values, valueOf(name, shape, operator, words))
		}
		if p.Out = o.Out[0]; q.Values[p.Out].IsOutside() {
			continue
		}
		for word := range strings.FieldsSeq(words) {
			name, value, _ := strings.Cut(word, "=")
			switch word[0] {
			case '#':
				o.Layer = word[1:]
			case '@':
				if o.Stack = slices.Index(stacks, word); o.Stack < 0 {
					at, text, _ := strings.Cut(word[1:], ":")
					o.Stack, stacks, q.Stacks = len(stacks), append(stacks, word), append(q.Stacks, list(at, number))
					for last := slices.Max(q.Stacks[o.Stack]); len(q.Frames) <= last; {
						q.Frames = append(q.Frames, program.Frame{Line: len(q.Frames) + 1})
					}
					q.Frames[len(q.Frames)-1].Text = text
				}
			default:
				o.Args = append(o.Args, program.Arg{Name: name, Value: argumentOf(value, ids)})
			}
		}
		p.Origin, q.Ops = append(p.Origin, len(q.Ops)), append(q.Ops, o)
	}
	p.Program = q.With(q.Values, q.Ops)
	return p
}

// valueOf is a result, or a value from outside: a record by its number, a weight by its name, or numbers.
func valueOf(name, shape, from, words string) program.Value {
	shape, dtype, _ := strings.Cut(shape, ":")
	v := program.Value{Shape: list(shape, number), DType: tensor.F32}
	if dtype != "" {
		v.DType, _ = tensor.ParseDType(dtype)
		v.Type = dtype
	}
	switch from {
	case "record":
		v.Record = number(name[1:])
	case "weight":
		if v.Weight = name; words != "" {
			v.Weight = words
		}
	case "data":
		for _, x := range list(words, decimal) {
			switch v.DType.Size() {
			case 1:
				v.Data = append(v.Data, byte(x))
			case 4:
				v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(float32(x)))
			default:
				v.Data = binary.LittleEndian.AppendUint64(v.Data, uint64(x))
			}
		}
	}
	return v
}

// argumentOf is a value, a number, a list of either, or a word.
func argumentOf(word string, ids map[string]program.ID) any {
	if many, ok := strings.CutPrefix(word, "["); ok {
		if many = strings.TrimSuffix(many, "]"); strings.ContainsFunc(many, func(r rune) bool { return r >= 'a' }) {
			return list(many, func(s string) program.ID { return ids[s] })
		}
		return list(many, number)
	}
	if id, ok := ids[word]; ok && word != "none" {
		return id
	}
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	if x, err := strconv.ParseFloat(word, 64); err == nil {
		return x
	}
	is, err := strconv.ParseBool(word)
	switch {
	case word == "none":
		return nil
	case err == nil:
		return is
	}
	return word
}

func list[T any](words string, one func(string) T) (out []T) {
	for word := range strings.SplitSeq(words, ",") {
		out = append(out, one(word))
	}
	return out
}

func number(word string) int { return int(decimal(word)) }

func decimal(word string) float64 {
	x, err := strconv.ParseFloat(word, 64)
	if err != nil {
		panic(err)
	}
	return x
}
