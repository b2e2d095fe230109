/** xAI: counts reasoning tokens outside the completion. */
import { isRawNumber } from '../../../core/json/exact.ts'
import type { Fields, Provider } from '../provider.ts'

const BASE_URL = 'https://api.x.ai/v1'

/** Names of counts of calls; beside them are counts of what the calls found, such as `x_posts_fetched`. */
const OF_CALLS = /^server_side_tool_|_calls$/i

/** Returns the counts of calls in a usage report; null for a report without them. */
function readReportedCalls({ server_side_tool_usage_details: details }: Fields): Fields | null {
  const isCounts = typeof details === 'object' && details !== null && !Array.isArray(details)
  if (!isCounts || isRawNumber(details)) return null
  return Object.fromEntries(Object.entries(details).filter(([name]) => OF_CALLS.test(name)))
}

export const xai: Provider = {
  title: 'xAI',
  baseUrls: {
    'chat-completions': BASE_URL,
    responses: BASE_URL,
    messages: 'https://api.x.ai',
  },
  keyHeader: 'authorization',
  outputLimitField: 'max_completion_tokens',
  keepsResponsesDays: 30,
  routingFields: ['search_parameters', 'deferred'],
  usage: {
    reasonsBeside: true,
    // Live search counts its sources; server tools are counted in a separate list.
    toolCalls: (usage) => readReportedCalls(usage) ?? { web_search_requests: usage.num_sources_used },
  },
  tools: {
    callType: ({ type, name }) =>
      type === 'custom_tool_call' && name.startsWith('x_') ? 'x_search_call' : null,
    reportedCalls: readReportedCalls,
  },
}
