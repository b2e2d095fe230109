/**
 * Where in a generate-content answer those things stand that a meter looks for.
 * Source: the vendor's documentation of `GenerateContentResponse`.
 */
import { Buffer } from 'node:buffer'

/** What the scanner does with a value that stands in a certain place. */
export interface Place {
  /** Of an object: its fields of interest. */
  readonly fields?: readonly Field[]
  /** Of a list: its elements. */
  readonly each?: Place
  /**
   * `said`: a string that the model said. `args`: a value that the model said, all of it. `part`: an object of these;
   * `thought`: whether it is thought. `count`: a number. `made`: a string that is content and not said. `block`: why the
   * prompt was blocked.
   */
  readonly is?:
    | 'said'
    | 'args'
    | 'part'
    | 'thought'
    | 'count'
    | 'error'
    | 'finish'
    | 'query'
    | 'run'
    | 'made'
    | 'block'
  /** What a count is called. */
  readonly name?: string
}

export interface Field {
  readonly name: Buffer
  readonly place: Place
}

const object = (fields: Record<string, Place>): Place => ({
  fields: Object.entries(fields).map(([name, place]) => ({ name: Buffer.from(name), place })),
})
const counts = (...names: string[]): Place =>
  object(Object.fromEntries(names.map((name) => [name, { is: 'count', name }])))
const list = (each: Place): Place => ({ each })

const SAID: Place = { is: 'said' }
const MADE: Place = { is: 'made' }
const QUERY: Place = { is: 'query' }
const FINISH: Place = { is: 'finish' }
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
  finishReason: FINISH,
  groundingMetadata: object({ webSearchQueries: list(QUERY) }),
  urlContextMetadata: object({ urlMetadata: list(object({ retrievedUrl: QUERY })) }),
})
export const ANSWER = object({
  candidates: list(CANDIDATE),
  usageMetadata: counts(
    'promptTokenCount',
    'toolUsePromptTokenCount',
    'cachedContentTokenCount',
    'candidatesTokenCount',
    'thoughtsTokenCount',
    'totalTokenCount',
  ),
  promptFeedback: object({ blockReason: { is: 'block' } }),
  error: { is: 'error' },
})
