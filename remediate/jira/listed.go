package jira

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// listed reads all pages of a createmeta list:
// https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issues/#api-rest-api-3-issue-createmeta-projectidorkey-issuetypes-get and
// https://docs.atlassian.com/software/jira/docs/api/REST/9.12.0/#api/2/issue-getCreateIssueMetaProjectIssueTypes
func (j *Jira) listed(ctx context.Context, doing, path string, into any) error {
	all := []json.RawMessage{}
	for range pages {
		var got struct { // Cloud names the list by what is in it, Data Center calls it values
			Types  []json.RawMessage `json:"issueTypes"`
			Fields []json.RawMessage `json:"fields"`
			Values []json.RawMessage `json:"values"`
			Total  int               `json:"total"`
		}
		if err := j.steadily(ctx, doing, http.MethodGet, fmt.Sprintf("%s?startAt=%d&maxResults=%d", path, len(all), page), nil, &got); err != nil {
			return err
		}
		n := len(all)
		all = append(append(append(all, got.Types...), got.Fields...), got.Values...)
		if len(all) == n || len(all) >= got.Total {
			break
		}
	}
	body, err := json.Marshal(all)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("%s: Jira's list is not understood", doing)
	}
	return nil
}
