package parity_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goparity/goparity/internal/dump"
)

// editJSON changes a JSON file, which it writes in another form than goparity does.
func editJSON(ts *testscript.TestScript, file string, edit func(object map[string]any)) {
	var object map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &object))
	edit(object)
	data, err := json.Marshal(object)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(file), data, 0o644))
}

// editList changes the list at a path such as .passes.0.tensors.
func editList(ts *testscript.TestScript, file, path string, edit func([]any) []any) {
	editJSON(ts, file, func(object map[string]any) {
		keys := strings.Split(strings.TrimPrefix(path, "."), ".")
		last := len(keys) - 1
		for i := 0; i < last; i++ {
			switch value := object[keys[i]].(type) {
			case map[string]any:
				object = value
			case []any:
				n, err := strconv.Atoi(keys[i+1])
				ts.Check(err)
				object = value[n].(map[string]any)
				i++
			}
		}
		object[keys[last]] = edit(object[keys[last]].([]any))
	})
}

// cut FILE PATH N leaves the first N entries of a list.
func cmdCut(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	editList(ts, args[0], args[1], func(l []any) []any { return l[:n:n] })
}

// drop FILE PATH LAYER takes the entries of a layer out of an order.
func cmdDrop(ts *testscript.TestScript, _ bool, args []string) {
	editList(ts, args[0], args[1], func(l []any) []any {
		return slices.DeleteFunc(l, func(e any) bool { return e.([]any)[1] == args[2] })
	})
}

// reseal FILE makes the hash of an index fit what it lists.
func cmdReseal(ts *testscript.TestScript, _ bool, args []string) {
	sum, err := dump.Seal([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	editJSON(ts, args[0], func(object map[string]any) { object["sha256"] = sum })
}
