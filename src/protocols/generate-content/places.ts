/** The places in a `GenerateContentResponse` that a meter reads. */
import { counts, ERROR, list, object, type Place, SAID } from '../answer/places.ts'

const MADE: Place = { is: 'made' }
const QUERY: Place = { is: 'query' }
const PART: Place = {
  ...object({
    text: SAID,
    thought: { is: 'thought' },
    functionCall: object({ name: MADE, args: { is: 'args' } }),
    inlineData: object({ data: MADE }),
    fileData: object({ fileUri: MADE }),
    executableCode: object({ code: SAID, language: { is: 'run' } }),
  }),
  is: 'part',
}
const CANDIDATE = object({
  content: object({ parts: list(PART) }),
  finishReason: { is: 'text', name: 'finish' },
  groundingMetadata: object({ webSearchQueries: list(QUERY) }),
  urlContextMetadata: object({ urlMetadata: list(object({ retrievedUrl: QUERY })) }),
})
const ANSWER = {
  candidates: list(CANDIDATE),
  usageMetadata: object(
    counts(
      'promptTokenCount',
      'toolUsePromptTokenCount',
      'cachedContentTokenCount',
      'candidatesTokenCount',
      'thoughtsTokenCount',
      'totalTokenCount',
    ),
  ),
  promptFeedback: object({ blockReason: { is: 'block' } }),
  error: ERROR,
} satisfies Record<string, Place>
export const GENERATE_CONTENT_ANSWER = object(ANSWER)
/** The first answer of a stream names the model, as all others do. */
export const FIRST_GENERATE_CONTENT_ANSWER = object({
  ...ANSWER,
  modelVersion: { is: 'text', name: 'model' },
})
