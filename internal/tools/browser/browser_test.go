package browser_test

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
	"github.com/goparity/goparity/internal/toy"
)

// tab is one page in the browser, with its errors and its requests.
type tab struct {
	ctx      context.Context
	mu       sync.Mutex
	problems []string
	requests []string
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium on this machine: apt-get install chromium")
	return ""
}

// open writes a report as a page and opens it.
func open(t *testing.T, r *report.Report, dark bool, width, height int64) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	out, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, export.HTML(out, r, "report.json"))
	require.NoError(t, out.Close())

	// Chromium refuses to run as root with its sandbox, and containers have little shared memory.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 30*time.Second)
	t.Cleanup(cancel)

	x := &tab{ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		x.mu.Lock()
		defer x.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			x.problems = append(x.problems, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			x.problems = append(x.problems, fmt.Sprint("console ", e.Type))
		case *log.EventEntryAdded:
			x.problems = append(x.problems, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			x.requests = append(x.requests, e.Request.URL)
		}
	})
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	address := url.URL{Scheme: "file", Path: filepath.ToSlash(file)}
	x.do(t, network.Enable(), log.Enable(),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: scheme}}),
		chromedp.EmulateViewport(width, height), chromedp.Navigate(address.String()),
		chromedp.WaitReady(`html[data-ready]`, chromedp.ByQuery))
	return x
}

func (x *tab) do(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	require.NoError(t, chromedp.Run(x.ctx, actions...))
}

// get evaluates an expression of the page.
func get[T any](t *testing.T, x *tab, expression string) (v T) {
	t.Helper()
	x.do(t, chromedp.Evaluate(expression, &v))
	return v
}

// find types into the field that filters by name.
func (x *tab) find(t *testing.T, text string) {
	t.Helper()
	get[bool](t, x,
		fmt.Sprintf(`(e => { e.value = %q; return e.dispatchEvent(new Event("input")); })(document.getElementById("find"))`, text))
}

// clean checks that the page complained of nothing and asked for nothing but itself.
func (x *tab) clean(t *testing.T) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	assert.Empty(t, x.problems, "errors on the console")
	assert.Len(t, x.requests, 1, "the page itself")
}

// shoot keeps a picture where PARITY_SCREENSHOTS names a folder: people look at it.
func (x *tab) shoot(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("PARITY_SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	x.do(t, chromedp.CaptureScreenshot(&png))
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

const firstLayer = `document.querySelector("#table tbody td.layer").title`

func TestDeepReport(t *testing.T) {
	x := open(t, toy.DeepReport(77, 20), false, 1400, 1000) // 1,000 layers
	x.do(t, chromedp.Sleep(200*time.Millisecond))           // what it might still ask for
	x.clean(t)
	assert.Contains(t, get[string](t, x, `document.getElementById("verdict").innerText`),
		"FAIL first divergence model.layers.20.self_attn")
	took := get[float64](t, x, `performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd`)
	t.Logf("opened in %.0f ms; 2,000 ms are too many", took) // a machine that is busy may need more
	assert.Positive(t, get[int](t, x, `document.querySelectorAll("#chart canvas").length`), "the chart is drawn")
	assert.Positive(t, get[int](t, x, `document.querySelectorAll("#heat-rows canvas").length`), "and the heat map")
	x.shoot(t, "deep-light")

	t.Run("sort", func(t *testing.T) {
		assert.Equal(t, "model.embed_tokens output", get[string](t, x, firstLayer), "execution order")
		x.do(t, chromedp.Click(`th[data-key="row_rel_l2"] button`, chromedp.ByQuery))
		assert.Equal(t, "descending",
			get[string](t, x, `document.querySelector('th[data-key="row_rel_l2"]').getAttribute("aria-sort")`),
			"the worst first")
		metrics := get[[]float64](t, x,
			`[...document.querySelectorAll("#table tbody tr.row")].slice(0, 100).map(r => Number(r.cells[6].innerText))`)
		assert.IsDecreasing(t, unique(metrics))
		x.do(t, chromedp.Click(`th[data-key="row_rel_l2"] button`, chromedp.ByQuery))
		assert.Equal(t, "model.embed_tokens output", get[string](t, x, firstLayer), "the best first")
		x.do(t, chromedp.Click(`th[data-key="order"] button`, chromedp.ByQuery))
	})
	t.Run("filter", func(t *testing.T) {
		x.do(t, chromedp.SendKeys("#find", "layers.20.self_attn", chromedp.ByQuery))
		names := get[[]string](t, x, `[...document.querySelectorAll("#table tbody td.layer")].map(c => c.title)`)
		require.Len(t, names, 5)
		for _, n := range names {
			assert.Contains(t, n, "layers.20.self_attn")
		}
		x.do(t, chromedp.Click(`#statuses input[value=fail]`, chromedp.ByQuery))
		assert.Equal(t, "4 of 1081 rows", get[string](t, x, `document.getElementById("shown").innerText`),
			"without the failing one")
		x.do(t, chromedp.Click(`#statuses input[value=fail]`, chromedp.ByQuery))
		x.find(t, `/layers\.7\.mlp$/`)
		assert.Equal(t, "0 of 1081 rows", get[string](t, x, `document.getElementById("shown").innerText`),
			"the port is part of what is searched")
		x.find(t, `/layers\.7\.mlp output/`)
		assert.Equal(t, "1 of 1081 rows", get[string](t, x, `document.getElementById("shown").innerText`),
			"a regular expression")
		x.find(t, "")
	})
	t.Run("details by keyboard", func(t *testing.T) {
		x.do(t, chromedp.Click("#jump", chromedp.ByQuery),
			chromedp.WaitVisible(`tr.first + tr.detail`, chromedp.ByQuery))
		assert.Contains(t, get[string](t, x, `document.querySelector("tr.detail").innerText`), "rows from 1 on")
		assert.Positive(t, get[int](t, x, `document.querySelectorAll("tr.detail svg rect").length`), "the histogram")
		x.shoot(t, "deep-detail")
		assert.True(t, get[bool](t, x, `document.activeElement.closest("tr.first") !== null`), "the row has the focus")
		x.do(t, chromedp.KeyEvent("\r"), chromedp.WaitNotPresent(`tr.detail`, chromedp.ByQuery))
		x.do(t, chromedp.KeyEvent("\r"), chromedp.WaitVisible(`tr.detail`, chromedp.ByQuery))
	})
	t.Run("chart", func(t *testing.T) {
		x.do(t, chromedp.SetValue("#metric", "2", chromedp.ByQuery),
			chromedp.Evaluate(`document.getElementById("metric").dispatchEvent(new Event("change"))`, nil))
		x.do(t, chromedp.Click(`#legend button`, chromedp.ByQuery))
		assert.Equal(t, "false",
			get[string](t, x, `document.querySelector("#legend button").getAttribute("aria-pressed")`))
	})
	x.clean(t)
}

// unique drops neighbours that are equal: metrics are rounded.
func unique(v []float64) []float64 {
	var out []float64
	for _, x := range v {
		if len(out) == 0 || out[len(out)-1] != x {
			out = append(out, x)
		}
	}
	return out
}

func TestOtherReports(t *testing.T) {
	const evil = `</script><img src=x onerror="console.log('ran')"><script>console.log('ran')</script>`
	hostile := toy.DeepReport(3, 1)
	hostile.Fixture, hostile.FirstDivergence.Text, hostile.Notes = evil, evil, []string{evil}
	for i := range hostile.Layers {
		l := &hostile.Layers[i]
		l.Layer, l.Note, l.Detail = l.Layer+evil, evil, append(l.Detail, evil)
	}
	hostile.FirstDivergence.Layer += evil
	alone := toy.DeepReport(3, -1)
	for i := range alone.Layers {
		alone.Layers[i].Injected = nil
	}
	nan := toy.DeepReport(3, 1)
	for i := range nan.Layers {
		if m := nan.Layers[i].Standard; i%3 == 0 {
			m.BadNonFinite, m.NaNActual, m.MSE, m.RowRelL2 = 4, 4, report.Float(math.NaN()), report.Float(math.Inf(1))
		}
	}
	for _, c := range []struct {
		name   string
		report *report.Report
		dark   bool
		width  int64
		want   string
		reason string
	}{
		{"dark", toy.DeepReport(77, 20), true, 1400, "FAIL", "dark"},
		{"narrow", toy.DeepReport(12, 3), false, 420, "FAIL", "a narrow window"},
		{"hostile", hostile, false, 1400, "<img src=x", "names are text"},
		{"nan", nan, false, 1400, "FAIL", "metrics that are no numbers"},
		{"pass", alone, false, 1400, "PASS", "no injected run, nothing fails"},
		{"error", &report.Report{Verdict: report.Error, Error: "the engine died"}, false, 1400, "the engine died",
			"no rows at all"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := open(t, c.report, c.dark, c.width, 1000)
			assert.Contains(t, get[string](t, x, `document.getElementById("verdict").innerText`), c.want, c.reason)
			assert.Zero(t, get[int](t, x, `document.querySelectorAll("img").length`), c.reason)
			assert.LessOrEqual(t, get[int64](t, x, `document.documentElement.scrollWidth`), c.width,
				"only the table scrolls sideways")
			background := get[string](t, x, `getComputedStyle(document.body).backgroundColor`)
			assert.Equal(t, c.dark, !strings.Contains(background, "255"), background)
			x.clean(t)
			x.shoot(t, c.name)
		})
	}
}

// The picture of path × depth: a row for each run with its description, and a mark where each is
// wrong first.
func TestPaths(t *testing.T) {
	for name, dark := range map[string]bool{"paths-light": false, "paths-dark": true} {
		x := open(t, toy.ReportAlong(77, 20), dark, 1400, 1000)
		assert.Equal(t, []string{"one pass", "decode:8", "chunked:4", "batch"},
			get[[]string](t, x, `[...document.querySelectorAll("#paths-rows .along:not([aria-hidden]) .name")].map(e => e.innerText)`))
		labels := get[[]string](t, x, `[...document.querySelectorAll("#paths-rows canvas")].map(e => e.getAttribute("aria-label"))`)
		require.Len(t, labels, 4)
		assert.Contains(t, labels[0], "one pass: 0 of 1004 layers beyond the limit")
		assert.Contains(t, labels[2], "chunked:4: first divergence model.layers.20.self_attn, pass 1, sequence 0, position 4; 738 of 1004 layers beyond the limit")
		marks := get[[]float64](t, x, `[...document.querySelectorAll("#paths-rows .mark")].map(e => parseFloat(e.style.left))`)
		require.Len(t, marks, 2, "of the paths that fail")
		assert.InDelta(t, 26.5, marks[0], 1, "block 20 of 77")
		high := get[[]int](t, x, `[...document.querySelectorAll("#paths-rows canvas")].map(c =>
			[...c.getContext("2d").getImageData(0, 0, c.width, 1).data].filter((v, i) => i % 4 === 3 && v).length)`)
		assert.Zero(t, high[0]+high[3], "a low bar is within the limit")
		assert.Greater(t, high[1], 150, "a high one beyond it")
		x.shoot(t, name)
		x.clean(t)
	}
}

// Each mark of a generation has the colour that its caption names, and nothing of the table is cut
// at the widths of common screens.
func TestWhatIsShownIsSeen(t *testing.T) {
	r := toy.DeepReport(12, 3)
	r.Generations = []report.Generation{{Case: "a", Verdict: "diverged", Text: "DIVERGED at token 2 of 3", Positions: []report.Token{
		{Choice: "same", Gap: 100, OwnGap: 90, KL: 1e-6}, {Choice: "tie", Gap: 2, OwnGap: -1, KL: 1e-3}, {Choice: "diverged", Gap: 100, OwnGap: 80, KL: 1}}}}
	for _, width := range []int64{1280, 1440, 1920} {
		x := open(t, r, false, width, 900)
		fills := get[[]string](t, x, `Array.from(document.querySelectorAll("svg.tokens rect"), r => getComputedStyle(r).fill)`)
		for _, want := range []string{"rgb(111, 159, 200)", "rgb(230, 159, 0)", "rgb(160, 16, 32)", "rgb(136, 136, 136)", "rgb(192, 16, 16)"} {
			assert.Contains(t, fills, want)
		}
		assert.LessOrEqual(t, get[float64](t, x, `(() => { const box = document.querySelector("#table, .scroll:has(td.why)"); return box.scrollWidth - box.clientWidth })()`),
			0.0, "at %d px the table has more columns than are seen", width)
		assert.Empty(t, get[[]string](t, x, `Array.from(document.querySelectorAll("td.why")).filter(c => c.scrollWidth > c.clientWidth).map(c => c.innerText)`),
			"at %d px a limit or reason is cut", width)
		assert.Contains(t, get[string](t, x, `document.getElementById("next").innerText`), "parity report report.json")
		x.clean(t)
		x.shoot(t, fmt.Sprint("wide", width))
	}
}
