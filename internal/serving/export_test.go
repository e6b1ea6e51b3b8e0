package serving

import (
	"fmt"
	"net/http"
)

// Over has requests sent otherwise than over connections.
func (o Options) Over(t http.RoundTripper) Options {
	o.transport = t
	return o
}

// Judge reads an answer as a server wrote it and judges it: whether it is right.
func Judge(m Model, ref *Reference, data []byte) (right bool, err error) {
	all, err := ReadAnswer(data)
	if err != nil {
		return false, err
	}
	return m.judge(ref, &all[0]).fault == none, nil
}

// Power is from which divergence on so many draws of a distribution of so many tokens tell another one, and Tail how
// probable counts of one are.
func Power(tokens, draws int, noise float64) float64 { return shows(tokens, float64(draws), noise) }

func Tail(p []float64, drawn []int, noise float64) float64 {
	expected, counts := map[string]float64{}, map[string]int{}
	for i := range p {
		expected[fmt.Sprint(i)], counts[fmt.Sprint(i)] = p[i], drawn[i]
	}
	return test(expected, 0, counts, noise).tail
}

// SurelyOther and PerhapsOther are what a tail is judged by.
const SurelyOther, PerhapsOther = surelyOther, perhapsOther
