/** The settings of a generate-content request, for the call log. Each field may be named in snake case. */
import type { GenerateContentRequest } from '../../../schemas/chat/generate-content.ts'
import { numberPiece, textPiece } from '../../core/call-log/detail-text.ts'
import { fieldsOf, type LooseObject } from '../loose.ts'
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
  const thinking = fieldsOf(config.thinkingConfig ?? config.thinking_config)
  return (
    numberPiece('temperature', config.temperature) +
    numberPiece('top_p', config.topP ?? config.top_p) +
    numberPiece('top_k', config.topK ?? config.top_k) +
    numberPiece('frequency_penalty', config.frequencyPenalty ?? config.frequency_penalty) +
    numberPiece('presence_penalty', config.presencePenalty ?? config.presence_penalty) +
    numberPiece('choices', config.candidateCount ?? config.candidate_count) +
    numberPiece('seed', config.seed) +
    stopPiece(config.stopSequences ?? config.stop_sequences) +
    textPiece('reasoning_effort', thinking.thinkingLevel ?? thinking.thinking_level) +
    numberPiece('thinking_budget_tokens', thinking.thinkingBudget ?? thinking.thinking_budget) +
    textPiece('response_format', config.responseMimeType ?? config.response_mime_type)
  )
}

/** @param contents how many there are: the request may hold fewer */
export function generateContentSettings(request: GenerateContentRequest, contents: number | null): string {
  const { tools } = request
  const calling = fieldsOf(request.toolConfig ?? request.tool_config)
  const { mode } = fieldsOf(calling.functionCallingConfig ?? calling.function_calling_config)
  const config = request.generationConfig ?? request.generation_config
  return (
    numberPiece('messages', contents) +
    (config == null ? '' : configSettings(config)) +
    (tools == null ? '' : numberPiece('tools', toolCount(tools))) +
    textPiece('tool_choice', mode)
  )
}
