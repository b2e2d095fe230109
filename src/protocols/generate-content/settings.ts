/** The settings of a generate-content request, for the call log. Each field may be named in snake case. */
import type { GenerateContentRequest } from '../../../schemas/chat/generate-content.ts'
import { printNumber, printText } from '../../core/call-log/detail-text.ts'
import { type LooseObject, toFields } from '../loose.ts'
import { stopPiece } from '../request/settings.ts'

/** Counts the tools: functions are in lists within the list of tools; another tool is one entry. */
function toolCount(tools: readonly LooseObject[]): number {
  let count = 0
  for (const tool of tools) {
    const functions = tool.functionDeclarations ?? tool.function_declarations
    count += Array.isArray(functions) ? functions.length : 1
  }
  return count
}

function configSettings(config: LooseObject): string {
  const thinking = toFields(config.thinkingConfig ?? config.thinking_config)
  return (
    printNumber('temperature', config.temperature) +
    printNumber('top_p', config.topP ?? config.top_p) +
    printNumber('top_k', config.topK ?? config.top_k) +
    printNumber('frequency_penalty', config.frequencyPenalty ?? config.frequency_penalty) +
    printNumber('presence_penalty', config.presencePenalty ?? config.presence_penalty) +
    printNumber('choices', config.candidateCount ?? config.candidate_count) +
    printNumber('seed', config.seed) +
    stopPiece(config.stopSequences ?? config.stop_sequences) +
    printText('reasoning_effort', thinking.thinkingLevel ?? thinking.thinking_level) +
    printNumber('thinking_budget_tokens', thinking.thinkingBudget ?? thinking.thinking_budget) +
    printText('response_format', config.responseMimeType ?? config.response_mime_type)
  )
}

/** @param contents how many there are: the request may hold fewer */
export function generateContentSettings(request: GenerateContentRequest, contents: number | null): string {
  const { tools } = request
  const calling = toFields(request.toolConfig ?? request.tool_config)
  const { mode } = toFields(calling.functionCallingConfig ?? calling.function_calling_config)
  const config = request.generationConfig ?? request.generation_config
  return (
    printNumber('messages', contents) +
    (config == null ? '' : configSettings(config)) +
    (tools == null ? '' : printNumber('tools', toolCount(tools))) +
    printText('tool_choice', mode)
  )
}
