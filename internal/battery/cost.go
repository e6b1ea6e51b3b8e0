package battery

import (
	"cmp"
	"fmt"
	"time"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/dump"
)

// Cost is what trying something takes, about: the constants are measured on one machine.
type Cost struct {
	Tokens int   // fed in all forward passes
	Bytes  int64 // of goldens in float32
	Time   time.Duration
}

func (c Cost) String() string {
	return fmt.Sprintf("about %s and %s", c.Time.Round(time.Second), megabytes(c.Bytes))
}

func (c *Cost) add(o Cost) {
	c.Tokens += o.Tokens
	c.Bytes += o.Bytes
	c.Time += o.Time
}

func megabytes(n int64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// size has the widths of a model.
type size struct{ hidden, inner, layers, vocab, experts, active int }

func sizeOf(c checkpoint.Config) size {
	s := size{experts: 1, active: 1, vocab: cmp.Or(c.Size("vocab_size"), defaultVocab)}
	s.hidden = cmp.Or(c.Hidden(), c.Size("dim", "embed_dim", "model_dim", "embedding_size"), defaultVocab)
	s.inner = cmp.Or(c.Size("intermediate_size", "ffn_dim", "n_inner", "d_ff", "ffn_hidden_size", "hidden_dim"), defaultExpand*s.hidden)
	s.layers = cmp.Or(c.Size("num_hidden_layers", "n_layer", "num_layers", "n_layers", "num_decoder_layers", "depth"), 1)
	if n := c.Size("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"); n > 0 {
		s.experts, s.active = n, cmp.Or(c.Size("num_experts_per_tok", "moe_top_k", "top_k_experts", "num_experts_per_token"), 1)
		s.inner = cmp.Or(c.Size("moe_intermediate_size", "expert_ffn_hidden_size"), s.inner)
	}
	return s
}

// load is the time in which both sides load the weights of so many blocks.
func (s size) load(layers int) time.Duration {
	weights := float64(layers)*s.block(s.experts) + 2*float64(s.hidden)*float64(s.vocab)
	return seconds(startSeconds + 2*4*weights/weightsPerSec)
}

// bytes are those recorded of one token.
func (s size) bytes(layers int) float64 {
	return 4 * (float64(layers)*(portsPerHidden*float64(s.hidden)+portsPerInner*float64(s.inner)*float64(s.active)) + 2*float64(s.vocab))
}

// of is the cost of forward passes over so many layers, all sides together; kept: their tensors are goldens.
// A token costs 4h² + 3hi·active products in each block and hV in the head, and two for each key
// that it sees and each unit of width.
func (s size) of(passes [][]dump.PassItem, layers int, kept bool) (c Cost) {
	macs := 0.0
	for _, items := range passes {
		for _, item := range items {
			n := item.To - item.From
			c.Tokens += n
			block := s.block(s.active) + 2*float64(item.To)*float64(s.hidden)
			macs += float64(n) * (float64(layers)*block + float64(s.hidden)*float64(s.vocab))
		}
	}
	recorded := s.bytes(layers) * float64(c.Tokens)
	if kept {
		c.Bytes = int64(recorded)
	}
	c.Time = seconds(sides * (macs/macsPerSecond + recorded/bytesPerSecond + passSeconds*float64(len(passes)*layers)))
	return c
}

// block are the weights of a block with so many experts.
func (s size) block(experts int) float64 {
	h := float64(s.hidden)
	return 4*h*h + 3*h*float64(s.inner)*float64(experts)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
