/** The places in a `GenerateContentResponse` that a meter reads. */
import { counts, ERROR, list, object, type Place, SAID } from '../answer/places.ts'

const MADE: Place = { is: 'made' }
const QUERY: Place = { is: 'query' }
const PAGE: Place = { is: 'page' }
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
const CANDIDATE = {
  content: object({ parts: list(PART) }),
  finishReason: { is: 'text', name: 'finish' },
  groundingMetadata: object({
    webSearchQueries: list(QUERY),
    groundingChunks: list(object({ maps: { ...object({}), is: 'maps' } })),
  }),
  urlContextMetadata: object({ urlMetadata: list(object({ retrievedUrl: PAGE })) }),
} satisfies Record<string, Place>
const ONE_CANDIDATE = object(CANDIDATE)
const OF_SEVERAL: Place = { ...object({ ...CANDIDATE, index: { is: 'index' } }), is: 'candidate' }
/**
 * Returns the place of counts by modality.
 * @param name of the counts
 * @param isLate only an answer that has finished is read: each chunk repeats them, and reading them costs a third more
 */
const byModality = (name: string, isLate: boolean): Place => ({
  isLate,
  ...list({
    ...object({
      modality: { is: 'text', name: 'modality' },
      tokenCount: { is: 'count', name: 'modalityTokens' },
    }),
    ...{ is: 'modality', name },
  }),
})

const answer = (isLate: boolean, candidate: Place) =>
  ({
    candidates: list(candidate),
    usageMetadata: object({
      ...counts(
        'promptTokenCount',
        'toolUsePromptTokenCount',
        'cachedContentTokenCount',
        'candidatesTokenCount',
        'thoughtsTokenCount',
        'totalTokenCount',
      ),
      promptTokensDetails: byModality('prompt', isLate),
      cacheTokensDetails: byModality('cache', isLate),
      candidatesTokensDetails: byModality('candidates', isLate),
      trafficType: { is: 'text', name: 'trafficType' },
      serviceTier: { is: 'text', name: 'serviceTier' },
    }),
    promptFeedback: object({ blockReason: { is: 'block' } }),
    error: ERROR,
  }) satisfies Record<string, Place>
/** The first answer of a stream names the model, as all others do. */
const answers = (candidate: Place) => ({
  first: object({ ...answer(false, candidate), modelVersion: { is: 'text', name: 'model' } }),
  later: object(answer(true, candidate)),
})
export const ANSWERS = { ofOne: answers(ONE_CANDIDATE), ofSeveral: answers(OF_SEVERAL) }
