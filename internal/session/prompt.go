package session

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/localise"
)

// otherPrompt: where both runs say which token ids they were given and these differ, nothing that follows is an error of a layer.
func (c *Comparison) otherPrompt(v *localise.Verdict) {
	if v.Kind == localise.KindInput {
		return
	}
	for _, k := range c.Cases {
		g, a := flatten(k.Golden.Info.TokenIDs), flatten(k.Actual.Info.TokenIDs)
		if k.Name != v.Case || len(g) == 0 || len(a) == 0 || slices.Equal(g, a) {
			continue
		}
		v.Kind, v.After, v.Before, v.Proven, v.Gaps, v.Frontier = localise.KindInput, "", "", true, nil, nil
		v.Text = fmt.Sprintf("the two runs were not asked the same: the golden got %d token ids, the candidate %d, and they differ", len(g), len(a))
	}
}

// flatten reads token ids, which are a list per sequence or one list.
func flatten(data json.RawMessage) (ids []int) {
	var rows [][]int
	if json.Unmarshal(data, &rows) == nil {
		return slices.Concat(rows...)
	}
	if json.Unmarshal(data, &ids) != nil {
		return nil
	}
	return ids
}
