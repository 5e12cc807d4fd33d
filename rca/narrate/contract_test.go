package narrate

import (
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// documented holds each request that a server was sent to what OpenAI documents.
func (s *server) documented(t *testing.T) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("testdata/chat.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range s.asked {
		if err := doc.Components.Schemas["Chat"].Value.VisitJSON(asked); err != nil {
			t.Errorf("%v: %v", asked["model"], err)
		}
		closed(t, asked["response_format"].(map[string]any)["json_schema"].(map[string]any)["schema"].(map[string]any))
	}
	if len(s.asked) == 0 {
		t.Error("nothing was asked")
	}
}

// closed says of a schema what strict would refuse: an object that is open, or has a property
// that may be missing.
func closed(t *testing.T, schema map[string]any) {
	t.Helper()
	if items, ok := schema["items"].(map[string]any); ok {
		closed(t, items)
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for name, of := range properties {
		if !slices.Contains(required, any(name)) {
			t.Errorf("%s may be missing", name)
		}
		closed(t, of.(map[string]any))
	}
	if schema["type"] == "object" && schema["additionalProperties"] != false {
		t.Errorf("an object is open: %v", schema)
	}
}

// What is sent is what is documented, also when it is asked again; what is not is noticed.
func TestRequestsAreDocumented(t *testing.T) {
	for _, model := range []string{"small", "gpt-5.4", "my-proxy/o3"} {
		s := &server{answers: []answer{says("no"), says(claims(good))}}
		o := options(s)
		o.Model = model
		n, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Word(t.Context(), found()); err != nil || len(s.asked) != 2 {
			t.Errorf("%s: %v, asked %d times", model, err, len(s.asked))
		}
		s.documented(t)
	}
	doc, err := openapi3.NewLoader().LoadFromFile("testdata/chat.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []map[string]any{{"model": "x"}, {"model": "x", "messages": []any{}, "response_format": map[string]any{"type": "json_schema"}}} {
		if doc.Components.Schemas["Chat"].Value.VisitJSON(bad) == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
