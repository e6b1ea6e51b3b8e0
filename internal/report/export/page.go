package export

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the assets
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/goparity/goparity/docs"
	"github.com/goparity/goparity/internal/report"
)

// uPlot 1.6.32, MIT licence: assets/uPlot.LICENSE, which the page repeats: a minified file keeps no comment.
var (
	//go:embed assets/uPlot.min.js
	uplotJS string
	//go:embed assets/uPlot.min.css
	uplotCSS string
	//go:embed assets/uPlot.LICENSE
	uplotLicence string
	//go:embed assets/page.js
	pageJS string
	//go:embed assets/page.css
	pageCSS string
	//go:embed assets/page.html
	pageHTML string
)

var page = template.Must(template.New("page").Funcs(template.FuncMap{"upper": upper, "about": about, "text": text}).Parse(pageHTML))

// content is what the template takes.
type content struct {
	Policy  string
	Style   template.CSS
	Scripts []template.JS
	Data    template.JS // JSON, in which Go escapes <, > and &
	Licence string
	Doc     *report.Document
	Texts   []textChart
	LeftOut int
}

// HTML writes the page of the report that lies in file, which the next command names. Reports of more than 8,000
// rows are shown in part: the failing ones first, then outputs.
func HTML(w io.Writer, r *report.Report, file string) error {
	d := dataOf(r)
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	style := uplotCSS + "\n" + pageCSS
	c := content{Style: template.CSS(style), Scripts: []template.JS{template.JS(uplotJS), template.JS(pageJS)},
		Data: template.JS(data), Licence: uplotLicence, Doc: r.Document(report.View{Verbose: true, File: file}), Texts: textCharts(r), LeftOut: d.LeftOut}
	c.Policy = fmt.Sprintf("default-src 'none'; script-src %s %s; style-src %s; base-uri 'none'; form-action 'none'",
		hash(uplotJS), hash(pageJS), hash(style))
	var b bytes.Buffer
	if err := page.Execute(&b, c); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// hash is how a policy names a text that it allows.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// about is what docs/causes.md says about a cause, but for its ids.
func about(id string) []docs.Part {
	parts := docs.Cause(id)
	return parts[min(1, len(parts)):]
}

func upper(v report.Verdict) string { return strings.ToUpper(string(v)) }

// text makes a string from a dump fit to show.
func text(s string) string {
	s = report.Clean(s)
	if r := []rune(s); len(r) > maxText {
		s = string(r[:maxText-1]) + "…"
	}
	return s
}
