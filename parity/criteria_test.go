package parity_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/parity"
)

// The table of criteria names exactly the methods of an assertion.
func TestCriteriaHaveMethods(t *testing.T) {
	assertion := reflect.TypeFor[*parity.Assertion]()
	named := map[string]bool{"Check": true, "In": true} // these are no criteria
	for _, c := range compare.Table() {
		named[c.Method] = true
		_, ok := assertion.MethodByName(c.Method)
		assert.True(t, ok, "%s: parity.Assertion has no method %s", c.Key, c.Method)
	}
	for i := range assertion.NumMethod() {
		name := assertion.Method(i).Name
		assert.True(t, named[name], "%s is no criterion of the table", name)
	}
}
