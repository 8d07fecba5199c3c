"""Checks of answers that the document's schemas cannot say."""

import schemathesis

# Why an answer may be 5xx in the rig of the tests: its converter fails at one form, is slow at another, and has no queue; two
# clients may listen.
REASONS = {502: {"ConversionFailed"}, 503: {"Busy", "Converting"}}


@schemathesis.check
def problems_say_what_they_are(ctx, response, case):
    """An error is a problem of RFC 9457; one of the server has a reason that is meant to be."""
    if response.status_code < 400 or case.method == "HEAD" or response.status_code in (416,):
        return
    kind = response.headers["content-type"][0]
    assert kind == "application/problem+json", f"an error of type {kind}"
    problem = response.json()
    assert problem["status"] == response.status_code, "the problem has another status"
    assert problem["detail"], "the problem says nothing"
    if response.status_code >= 500:
        known = REASONS.get(response.status_code, set())
        assert problem["reason"] in known, f"{response.status_code} for {problem['reason']}"


@schemathesis.check
def nothing_is_sniffed(ctx, response, case):
    """Every answer of the API has the headers that keep browsers from taking it for a page."""
    if case.method == "OPTIONS":  # answered for CORS, with headers alone
        return
    assert response.headers["x-content-type-options"] == ["nosniff"]
    assert "default-src 'none'" in response.headers["content-security-policy"][0]
