package cause_test

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// limits are those of each floor, by package, so that a change of one is seen. What each counts, and why it is this, stands behind
// it in limits.go.
var limits = map[string]string{
	"diagnose.margin":      "8",
	"diagnose.loosely":     "2",
	"diagnose.alike":       "3",
	"diagnose.belowFloor":  "0.1",
	"diagnose.PerParam":    "32",
	"diagnose.shown":       "5",
	"diagnose.shownLoose":  "2",
	"diagnose.sampleFrom":  "1 << 20",
	"diagnose.sampleKeep":  "1 << 19",
	"diagnose.sampleLeast": "128",

	"fault.otherNorms":    "200",
	"fault.otherLayers":   "64",
	"fault.changedWeight": "1 << 22",
	"fault.roundedWeight": "1 << 24",
	"fault.fewRows":       "16",
	"fault.maxHeads":      "256",
	"fault.maxRoll":       "8",
	"fault.everyWindow":   "64",
	"fault.maxGroups":     "64",
	"fault.damageRows":    "128",
	"fault.maxTiles":      "64",
	"fault.spansOfAll":    "40",
	"fault.maxFitTiles":   "128",
	"fault.leastTheta":    "10",
	"fault.mostTheta":     "1e9",
	"fault.scaleReach":    "64",
	"fault.maxFactor":     "4",
	"fault.guessRank":     "3",
	"fault.unsureRank":    "2",
	"fault.sameFactor":    "1e-3",
	"fault.sameTheta":     "1e-6",
	"fault.sameScale":     "1e-9",
	"fault.sameRow":       "0.1",
	"fault.knownFactor":   "0.02",
	"fault.explained":     "0.98",
	"fault.unexplained":   "1e-4",
	"fault.smallColumn":   "0.2",
	"fault.halfInfinity":  "65520",
	"fault.clearNoise":    "5",

	"op.DecodeMax":      "1 << 25",
	"op.keptMatrix":     "1 << 22",
	"op.matrixPart":     "1 << 20",
	"op.maskMax":        "1 << 22",
	"op.maskTokens":     "1 << 10",
	"op.hiddenScore":    "-1e3",
	"op.normalCond":     "1e14",
	"op.learnCond":      "1e7",
	"op.noBias":         "1e-4",
	"op.gridSteps":      "48",
	"op.goldenSections": "28",
	"op.gridRows":       "8",
	"op.nearWhole":      "0.01",
	"op.clearlyFewer":   "8",

	"pattern.placesMost":     "1 << 25",
	"pattern.layoutMost":     "1 << 22",
	"pattern.sampled":        "64",
	"pattern.mostRows":       "4",
	"pattern.mostColumns":    "64",
	"pattern.widest":         "1 << 14",
	"pattern.mostPairs":      "1 << 26",
	"pattern.lineElements":   "32",
	"pattern.markElements":   "32",
	"pattern.fewRows":        "16",
	"pattern.leastHead":      "8",
	"pattern.wholeFactors":   "16",
	"pattern.maskElements":   "4096",
	"pattern.maskHides":      "-1e3",
	"pattern.leastFloor":     "1e-5",
	"pattern.nearGolden":     "64",
	"pattern.floors":         "10",
	"pattern.leastTolerance": "1e-4",
	"pattern.sameElement":    "1e-3",
	"pattern.sameScale":      "1e-5",
	"pattern.sameRow":        "1e-3",
	"pattern.sameTableRow":   "1e-4",
	"pattern.markFloors":     "4",
	"pattern.deviations":     "4",
	"pattern.noiseBias":      "0.02",
	"pattern.ofElement":      "8",
	"pattern.ofTensor":       "4",
	"pattern.largestNoise":   "0.12",
	"pattern.noiseLeast":     "64",
	"pattern.alikeRows":      "8",
	"pattern.mayOverflow":    "1e4",
	"pattern.byChance":       "0.1",
	"pattern.tellsNothing":   "1e-3",
	"pattern.droppedBelow":   "1e-5",
	"pattern.valuesCond":     "1e4",
	"pattern.tooSmall":       "1e-5",
	"pattern.largeEnough":    "1e-2",
	"pattern.weightError":    "0.05",
	"pattern.leastRate":      "1e-3",
	"pattern.mostRate":       "0.95",

	"rebuild.workLimit":      "6e9",
	"rebuild.attentionShare": "4",
	"rebuild.searchShare":    "8",
	"rebuild.searchSteps":    "80",
	"rebuild.searchRows":     "6",
	"rebuild.rightWork":      "1e9",
	"rebuild.SampleRows":     "256",
	"rebuild.ProbeRows":      "16",
	"rebuild.inFull":         "12",
	"rebuild.sameID":         "3",
	"rebuild.coneSize":       "48",
	"rebuild.attentionRows":  "6",
	"rebuild.termRows":       "12",
	"rebuild.termColumns":    "24",
	"rebuild.modulationRows": "6",
	"rebuild.learnRows":      "64",
	"rebuild.learnLeast":     "6",
	"rebuild.learnInputs":    "512",
	"rebuild.learnOutputs":   "2048",
	"rebuild.masksTried":     "6",
	"rebuild.windowsTried":   "128",
	"rebuild.settingsTried":  "24",
	"rebuild.gatedMost":      "40",
	"rebuild.partsLeast":     "2",
	"rebuild.partsMost":      "12",
	"rebuild.better":         "2",
	"rebuild.sure":           "0.05",
	"rebuild.looksGood":      "2.0 / 3",
	"rebuild.looksSure":      "1.0 / 3",
	"rebuild.freely":         "8",
	"rebuild.noFactor":       "1e-3",
	"rebuild.anglePrecision": "1e-3",
	"rebuild.sizePrecision":  "0.02",
	"rebuild.thetaPrecision": "0.01",
	"rebuild.sineAtZero":     "1e-6",
	"rebuild.configTheta":    "0.1",
	"rebuild.cosineMost":     "1.01",
	"rebuild.noise64":        "1e-9",
	"rebuild.noise32":        "2e-5",
	"rebuild.noise16":        "4e-3",
	"rebuild.noiseB16":       "2e-2",
	"rebuild.noiseB16More":   "3e-2",
}

// Each limit has the value of the table, and a comment in its file.
func TestLimits(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "*", "limits.go"))
	require.NoError(t, err)
	found := map[string]bool{}
	for _, name := range append(files, filepath.Join("..", "limits.go")) {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			d, ok := n.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				return true
			}
			for _, s := range d.Specs {
				v := s.(*ast.ValueSpec)
				key := file.Name.Name + "." + v.Names[0].Name
				found[key] = true
				var value strings.Builder
				require.NoError(t, printer.Fprint(&value, set, v.Values[0]))
				assert.Equal(t, limits[key], value.String(), "%s in %s: a limit was changed, or is not in the table", key, name)
				assert.NotEmpty(t, v.Comment.Text(), "%s in %s: say what it counts, in which unit, and why it is this", key, name)
			}
			return true
		})
	}
	for key := range limits {
		assert.True(t, found[key], "%s is in no limits.go", key)
	}
}
