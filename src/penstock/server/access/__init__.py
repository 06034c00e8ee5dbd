"""Who asks and what they may: credentials, rules, limits, requests that come twice."""
