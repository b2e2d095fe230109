/** The places in a `GenerateContentResponse` that a meter reads. */
import { fields, json, list, object, type Place, place, SAID, text } from '../answer/places.ts'

const MADE = place({ is: 'made' })
const QUERY = place({ is: 'query' })
const PAGE = place({ is: 'page' })
const PART = place({
  is: 'part',
  fields: fields({
    text: SAID,
    thought: place({ is: 'thought' }),
    functionCall: object({ name: MADE, args: place({ is: 'args' }) }),
    inlineData: object({ data: MADE }),
    fileData: object({ fileUri: MADE }),
    executableCode: object({ code: SAID, language: place({ is: 'run' }) }),
  }),
})
const CANDIDATE = {
  content: object({ parts: list(PART) }),
  finishReason: place({ is: 'finish' }),
  groundingMetadata: object({
    webSearchQueries: list(QUERY),
    groundingChunks: list(object({ maps: place({ fields: [], is: 'maps' }) })),
  }),
  urlContextMetadata: object({ urlMetadata: list(object({ retrievedUrl: PAGE })) }),
} satisfies Record<string, Place>
const ONE_CANDIDATE = object(CANDIDATE)
const OF_SEVERAL = place({
  is: 'candidate',
  fields: fields({ ...CANDIDATE, index: place({ is: 'index' }) }),
})
const answer = (candidate: Place) =>
  object({
    candidates: list(candidate),
    usageMetadata: json((facts, value) => (facts.usage = value)),
    promptFeedback: object({ blockReason: place({ is: 'block' }) }),
    modelVersion: text((facts, value) => (facts.model = value)),
    error: json((facts, value) => (facts.error = value)),
  })
export const ANSWERS = { ofOne: answer(ONE_CANDIDATE), ofSeveral: answer(OF_SEVERAL) }
