/** The places in the JSON of an answer that a meter reads. */
import { Buffer } from 'node:buffer'

/** What the scanner does with the value at a place. */
export interface Place {
  /** Of an object: its fields of interest. */
  readonly fields?: readonly Field[]
  /** Of an object: its other fields. */
  readonly rest?: Place
  /** Of a list: its elements. */
  readonly each?: Place
  /**
   * `said`: a string that the model said. `args`: a value that the model said, all of it. `part`: an object of these;
   * `thought`: whether it is thought. `count`: a number; `sum`: one of several that are added up. `text`: a short string.
   * `made`: a string that is content and not said. `block`: why the prompt was blocked.
   */
  readonly is?:
    | 'said'
    | 'args'
    | 'part'
    | 'thought'
    | 'count'
    | 'sum'
    | 'text'
    | 'error'
    | 'finish'
    | 'query'
    | 'run'
    | 'made'
    | 'block'
  /** What a count or a text is called. */
  readonly name?: string
}

export interface Field {
  readonly name: Buffer
  readonly place: Place
}

export const object = (fields: Record<string, Place>): Place => ({
  fields: Object.entries(fields).map(([name, place]) => ({ name: Buffer.from(name), place })),
})
/** Fields that are counts. */
export const counts = (...names: string[]): Record<string, Place> =>
  Object.fromEntries(names.map((name) => [name, { is: 'count', name }]))
export const list = (each: Place): Place => ({ each })

export const SAID: Place = { is: 'said' }
export const FINISH: Place = { is: 'finish' }
export const ERROR: Place = { is: 'error' }
