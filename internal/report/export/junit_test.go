package export_test

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/report/export"
)

type junitCase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Failure string   `xml:"failure"`
	Out     []string `xml:"system-out"`
}

func parseJUnit(t *testing.T, data []byte) map[string]junitCase {
	t.Helper()
	var file struct {
		Suites []struct {
			Cases []junitCase `xml:"testcase"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal(data, &file))
	cases := map[string]junitCase{}
	for _, s := range file.Suites {
		for _, c := range s.Cases {
			cases[c.Name] = c
		}
	}
	return cases
}

// junitReport is of a test that fails in testdata/junit.xml, which gotestsum 1.13.0 wrote.
func junitReport() *report.Report {
	return &report.Report{Verdict: report.Fail, Tests: []string{"TestMiniLM", "TestX"}}
}

func TestAttachToAFileOfGotestsum(t *testing.T) {
	before, err := os.ReadFile(filepath.Join("testdata", "junit.xml"))
	require.NoError(t, err)
	after, err := export.Attach(before, junitReport(), "out/minilm/report.json", "out/a & b.txt")
	require.NoError(t, err)

	was, is := parseJUnit(t, before), parseJUnit(t, after)
	require.Len(t, is, len(was))
	lines := "\n[[ATTACHMENT|out/minilm/report.json]]\n[[ATTACHMENT|out/a & b.txt]]\n"
	for name, reason := range map[string]string{
		"TestMiniLM/layers.1": "a failing layer", "TestMiniLM/layers.1/hello.0": "its case", "TestMiniLM/layers.10": "what only passes on an error",
		"TestMiniLM/lm_head": "a missing layer", "TestMiniLM/layers.3.norm": "a failing layer",
		`TestMiniLM/odd_name/with_<slash>_&_\u00ad`: "package testing has rewritten the label",
		"TestMiniLM/parity:stale":                   "the plugin's own subtest", "TestMiniLM": "the test that holds them",
	} {
		assert.Equal(t, []string{lines}, is[name].Out, "%s: %s", name, reason)
		delete(is, name)
	}
	for _, c := range is {
		assert.Empty(t, c.Out, "%s has not failed, or is of another test", c.Name)
	}
	added := "\t<system-out>\n[[ATTACHMENT|out/minilm/report.json]]\n[[ATTACHMENT|out/a &amp; " +
		"b.txt]]\n</system-out>\n\t\t"
	assert.Equal(t, string(before), strings.ReplaceAll(string(after), added, ""), "all other bytes stay as they are")

	again, err := export.Attach(after, junitReport(), "out/minilm/report.json", "out/a & b.txt")
	require.NoError(t, err)
	assert.Equal(t, string(after), string(again), "once is enough")
}

func TestAttachForms(t *testing.T) {
	const head, tail = `<?xml version="1.0"?><testsuite><testcase name="TestX/layers.1" classname='p'>`,
		`</testcase></testsuite>`
	const line = "[[ATTACHMENT|r.json]]\n"
	const added = "\t<system-out>\n" + line + "</system-out>\n\t\t"
	same := func(body string) [2]string { return [2]string{body, body} }
	for reason, c := range map[string][2]string{
		"an error is a failure too": {`<error/>`, "<error/>" + added},
		"nothing to explain":        same(`<properties/>`),
		"CDATA is no markup":        {`<failure><![CDATA[</testcase>]]></failure>`, `<failure><![CDATA[</testcase>]]></failure>` + added},
		"one system-out, not two":   {`<system-out>text</system-out><failure/>`, "<system-out>text\n" + line + "</system-out><failure/>"},
		"after the CDATA": {`<system-out><![CDATA[a<b]]></system-out ><failure/>`,
			"<system-out><![CDATA[a<b]]>\n" + line + "</system-out ><failure/>"},
		"the tag is opened":               {`<system-out/><failure/>`, "<system-out>\n" + line + "</system-out><failure/>"},
		"not twice":                       same(`<system-out>[[ATTACHMENT|r.json]]</system-out><failure/>`),
		"the text counts, not its bytes":  same(`<system-out>&#91;[ATTACHMENT|r.json]]</system-out><failure/>`),
		"a deeper failure is not its own": same(`<properties><failure/></properties>`),
	} {
		got, err := export.Attach([]byte(head+c[0]+tail), junitReport(), "r.json")
		require.NoError(t, err, reason)
		assert.Equal(t, head+c[1]+tail, string(got), reason)
		again, err := export.Attach(got, junitReport(), "r.json")
		require.NoError(t, err)
		assert.Equal(t, string(got), string(again), "twice is once")
	}
}

func TestAttachNames(t *testing.T) {
	of := func(tests ...string) *report.Report { return &report.Report{Verdict: report.Fail, Tests: tests} }
	for _, c := range []struct {
		name   string
		r      *report.Report
		want   bool
		reason string
	}{
		{"TestX", of("TestX"), true, "the test"},
		{"TestX/layers.1", of("TestX"), true, "a layer of it"},
		{"TestX/layers.1#01/short.0", of("TestX"), true, "a case of one"},
		{"TestX/path:decode-8/layers.1/short", of("TestX"), true, "an execution path"},
		{"TestX/weights/a", of("TestX"), true, "any stage"},
		{"TestX/parity:infra", of("TestX"), true, "what the plugin says"},
		{"TestY/layers.1", of("TestX"), false, "another fixture's test has the same layer"},
		{"TestY/parity:infra", of("TestX"), false, "or another trouble"},
		{"TestXY", of("TestX"), false, "another name"},
		{"TestX", of("TestX/a"), true, "the test that holds it"},
		{"TestX/b/layers.1", of("TestX/a"), false, "a sibling"},
		{"TestX/layers.1", of(), false, "no test made the report"},
	} {
		got, err := export.Attach([]byte(`<testsuite><testcase name="`+c.name+`"><failure/></testcase></testsuite>`), c.r, "r.json")
		require.NoError(t, err)
		assert.Equal(t, c.want, strings.Contains(string(got), "[[ATTACHMENT|r.json]]"), "%s: %s", c.name, c.reason)
	}
}

// Of several packages in one file the report's own counts, by its import path or the end of it.
func TestAttachPackage(t *testing.T) {
	const junit = `<testsuite><testcase classname="a/port" name="TestX"><failure/></testcase><testcase classname="b/port" name="TestX"><failure/></testcase></testsuite>`
	for _, c := range []struct {
		pkg    string
		want   []string
		reason string
	}{
		{"example.com/a/port", []string{"a/port"}, "the end of its import path"},
		{"b/port", []string{"b/port"}, "all of it"},
		{"example.com/aa/port", []string{"a/port", "b/port"}, "none: the file does not say which"},
		{"", []string{"a/port", "b/port"}, "the report does not say which"},
	} {
		got, err := export.Attach([]byte(junit), &report.Report{Package: c.pkg, Tests: []string{"TestX"}}, "r.json")
		require.NoError(t, err)
		var attached []string
		for _, part := range strings.SplitAfter(string(got), "</testcase>") {
			if strings.Contains(part, "[[ATTACHMENT|r.json]]") {
				_, class, _ := strings.Cut(part, `classname="`)
				class, _, _ = strings.Cut(class, `"`)
				attached = append(attached, class)
			}
		}
		assert.Equal(t, c.want, attached, c.reason)
	}
}

func TestAttachRefuses(t *testing.T) {
	good := `<testsuite><testcase name="TestX/layers.1"><failure/></testcase></testsuite>`
	for _, c := range []struct{ junit, path, want, reason string }{
		{"", "r.json", "did not run to their end", "empty: gotestsum was killed"},
		{"<testsuite>\n<testcase name=\"x\">", "r.json", "damaged at line 2", "cut: gotestsum was killed"},
		{"ok  \texample.com/user", "r.json", "empty", "the wrong file"},
		{"<a><b></a></b>", "r.json", "damaged at line 1", "not well-formed"},
		{good, "a]]b", "cannot be attached", "its end would not be found"},
		{good, "a\nb", "cannot be attached", "the pattern is one line"},
		{good, "", "cannot be attached", "no path: a mistake of the caller"},
	} {
		_, err := export.Attach([]byte(c.junit), junitReport(), c.path)
		assert.ErrorContains(t, err, c.want, c.reason)
	}
}

func TestPath(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "out", "minilm", "report.json")
	relative, err := export.Path(file, root, false)
	require.NoError(t, err)
	assert.Equal(t, "out/minilm/report.json", relative)
	absolute, err := export.Path(file, root, true)
	require.NoError(t, err)
	assert.Equal(t, filepath.ToSlash(file), absolute)
	wd, err := os.Getwd()
	require.NoError(t, err)
	relative, err = export.Path("out/r.json", wd, false)
	require.NoError(t, err)
	assert.Equal(t, "out/r.json", relative)
}

func FuzzAttach(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "junit.xml"))
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`<testsuite><testcase name="TestX/layers.1"><system-out/><failure/></testcase></testsuite>`))
	f.Add([]byte(`<testsuite><testcase name="TestX/layers.1"><failure/><system-out><a/>b</system-out></testcase></testsuite>`))
	r := junitReport()
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := export.Attach(data, r, "r.json")
		if err != nil {
			return
		}
		twice, err := export.Attach(once, r, "r.json")
		require.NoError(t, err, "what comes out is well-formed")
		require.Equal(t, string(once), string(twice))
	})
}
