/** The places in the JSON of an answer that a meter reads. */
import { Buffer } from 'node:buffer'

/** The scanner's handling of the value at a place. */
export interface Place {
  /** Of an object: its fields of interest. */
  readonly fields?: readonly Field[]
  /** Of an object: its other fields. */
  readonly rest?: Place
  /** Of a list: its elements. */
  readonly each?: Place
  /** Of a list: it is read after the reason to finish alone. */
  readonly isLate?: boolean
  /**
   * `said`: a string of output. `args`: a value that is output, all of it. `part`: an object of these; `thought`: true
   * for reasoning. `count`: a number; `sum`: one of several to add up. `text`: a short string. `made`: a string that
   * is content, not output. `modality`: an object with the tokens of one modality. `candidate`: one of several objects that finish, with its `index`. `iteration`: an object with counts that are not those around it. `maps`: a place of a map. `block`: the reason for which the prompt was blocked.
   */
  readonly is?:
    | 'said'
    | 'args'
    | 'part'
    | 'candidate'
    | 'index'
    | 'thought'
    | 'count'
    | 'sum'
    | 'text'
    | 'error'
    | 'finish'
    | 'query'
    | 'page'
    | 'run'
    | 'modality'
    | 'iteration'
    | 'maps'
    | 'made'
    | 'block'
  /** Name of a count or a text; of a modality, the beginning of its count's name. */
  readonly name?: string
}

interface Field {
  readonly name: Buffer
  readonly place: Place
}

export const object = (fields: Record<string, Place>): Place => ({
  fields: Object.entries(fields).map(([name, place]) => ({ name: Buffer.from(name), place })),
})
/** Returns places of fields that are counts. */
export const counts = (...names: string[]): Record<string, Place> =>
  Object.fromEntries(names.map((name) => [name, { is: 'count', name }]))
export const list = (each: Place): Place => ({ each })

export const SAID: Place = { is: 'said' }
export const FINISH: Place = { is: 'finish' }
export const ERROR: Place = { is: 'error' }
