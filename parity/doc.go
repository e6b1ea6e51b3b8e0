// Package parity turns the comparison of a model port with its reference into ordinary Go subtests.
//
//	func TestMain(m *testing.M) { testmain.Main(m, testmain.Fixture("fixtures/minilm")) }
//
//	func TestMiniLM(t *testing.T) {
//		parity.Layer(t, "embeddings").Within(1e-5, 1e-4) // one layer, one subtest
//		parity.Layers(t, "encoder.layer.*.attention").In(tensor.BF16, 2e-2, 2e-2).Within(1e-4, 1e-3)
//		parity.All(t).Check() // the rest, by the fixture's tolerances
//	}
//
// Each layer is a subtest TestMiniLM/<layer>, named by the golden's own label, so go test -run
// bisects. With several cases or steps a layer has children <case>.<step>. A layer is judged by its
// outputs and taps in the candidate's standard run; its inputs are evidence of where an error came
// from.
//
// [Layer], [Layers] and [All] choose; [Assertion.With] has criteria as modifiers, all of which must
// hold, and ends in a terminal: Within for numpy's rule |a − g| ≤ atol + rtol·|g|, Check for the
// fixture's tolerances. A forgotten terminal fails the test.
//
// A run that fails says why where the cause is known (docs/causes.md).
//
// A test fails where nothing was compared: an unknown layer, a filter that hits no layer, a layer
// that the candidate did not record.
package parity
