package continuation

import (
	"encoding/binary"
	"math"

	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/tensor"
)

// perplexityMagic begins what llama-perplexity --kl-divergence-base FILE saves: the log-probabilities of
// a text, in 16 bits.
//
//	"_logits_", int32 n_ctx, n_vocab, n_chunk, n_chunk·n_ctx tokens as int32, and for each chunk and each of
//	its tokens from n_ctx/2 to n_ctx − 2: float32 scale, float32 least, n_vocab numbers of 16 bits (one more
//	if n_vocab is odd); log p = least + scale·number
const perplexityMagic = "_logits_"

// perplexity reads such a file, a text for each chunk.
func perplexity(path string, data []byte) ([]*Side, error) {
	const header = len(perplexityMagic) + 12
	if len(data) < header {
		return nil, unjudged("the file ends in its header")
	}
	word := func(at int) int { return int(int32(binary.LittleEndian.Uint32(data[at:]))) }
	context, vocab, chunks := word(8), word(12), word(16)
	if context < 4 || vocab < 2 || chunks < 1 || context > len(data) || vocab > len(data) || chunks > len(data)/context/4 {
		return nil, unjudged("its header has %d chunks of %d tokens and %d words, which no file of %d bytes holds", chunks, context, vocab, len(data))
	}
	first := context / 2
	rows, width := context-1-first, 2*(2*((vocab+1)/2)+4)
	at := header + 4*chunks*context
	if want := at + chunks*rows*width; len(data) != want {
		return nil, unjudged("it has %d bytes, its header asks for %d: it was not written to its end", len(data), want)
	}
	var sides []*Side
	for chunk := range chunks {
		s := &Side{From: path, Prompt: first + 1}
		for i := range context {
			s.Text = append(s.Text, word(header+4*(chunk*context+i)))
		}
		s.Fed = s.Text[s.Prompt:]
		var read []generation.Row
		for range rows {
			read = append(read, scaledRow(data[at:at+width], vocab))
			at += width
		}
		s.logits = listed("log-probabilities", tensor.F16, read)
		sides = append(sides, s)
	}
	return sides, nil
}

// scaledRow reads a row of numbers of 16 bits.
func scaledRow(data []byte, vocab int) generation.Row {
	scale := float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))
	least := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4:])))
	v := make([]float64, vocab)
	for i := range v {
		v[i] = least + scale*float64(binary.LittleEndian.Uint16(data[8+2*i:]))
	}
	return generation.NewRow(v)
}
