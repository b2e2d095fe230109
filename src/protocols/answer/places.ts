/** The places in the JSON of an answer that a meter reads, and what it finds there. */
import { Buffer } from 'node:buffer'

/** Notes a text. A function, since fields that are found by their names take several times as long. */
type Note = (facts: AnswerFacts, text: string) => void

/** What to read of a value. */
export interface Place {
  /** Of an object: its fields of interest. */
  readonly fields: Fields | undefined
  /** Of an object: its other fields. */
  readonly rest: Place | undefined
  /** Of a list: its elements. */
  readonly each: Place | undefined
  /**
   * `said`: a string of output. `args`: a value that is output, all of it. `part`: an object of these; `thought`: true
   * for reasoning. `text`: a short string. `json`: a value other than null, as its text; `object`: the same, of objects
   * only. `finish`: the reason to finish. `candidate`: one of several objects that finish, with its `index`. `choices`: a
   * list of them. `made`: a string that is content, not output. `query`, `page`, `run`: what the upstream searched,
   * fetched and ran. `maps`: a place of a map. `block`: the reason for which the prompt was blocked.
   */
  readonly is:
    | undefined
    | 'said'
    | 'args'
    | 'part'
    | 'thought'
    | 'text'
    | 'json'
    | 'object'
    | 'finish'
    | 'candidate'
    | 'index'
    | 'choices'
    | 'made'
    | 'query'
    | 'page'
    | 'run'
    | 'maps'
    | 'block'
  /** Of a text or of JSON. */
  readonly note: Note | undefined
  /** A list with items, or an object with fields, is content. */
  readonly isContent: boolean | undefined
}

interface Field {
  readonly name: Buffer
  readonly place: Place
}

/** Fields by the length of their names. */
type Fields = readonly (readonly Field[] | undefined)[]

/** Returns a place; all have one shape, which makes reading them fast. */
export const place = ({ fields, rest, each, is, note, isContent }: Partial<Place>): Place => ({
  fields,
  rest,
  each,
  is,
  note,
  isContent,
})

/** Returns the fields of an object, for its place. */
export function fields(places: Record<string, Place>, byLength: Field[][] = []): Fields {
  for (const [name, place] of Object.entries(places)) {
    byLength[name.length] ??= []
    byLength[name.length]!.push({ name: Buffer.from(name), place })
  }
  return byLength
}

export const object = (places: Record<string, Place>): Place => place({ fields: fields(places) })
export const list = (each: Place): Place => place({ each })
/** Returns the place of a short text; of another value, what is inside of it. */
export const text = (note: Note, inside: Partial<Place> = {}): Place => place({ ...inside, is: 'text', note })
export const json = (note: Note): Place => place({ is: 'json', note })

/** Returns the place of an object or a list whose fields mean the same at any depth. */
export function anywhere(placesIn: (inside: Place) => Record<string, Place>): Place {
  const inside: { -readonly [Key in keyof Place]: Place[Key] } = place({})
  inside.rest = inside
  inside.each = inside
  const byLength: Field[][] = []
  inside.fields = byLength
  fields(placesIn(inside), byLength)
  return inside
}

export const SAID = place({ is: 'said' })
/** Errors in the shape that most protocols have, and the field in which some upstreams report the outcome. */
export const FAILURES = {
  error: json((facts, text) => (facts.error = text)),
  base_resp: json((facts, text) => (facts.outcome = text)),
}

/** Returns the place of the field whose name is `bytes[start, end)`, written without escapes. */
export function findPlace(around: Place, bytes: Buffer, start: number, end: number): Place | undefined {
  const fields = around.fields![end - start]
  if (fields === undefined) return around.rest
  for (let at = 0; at < fields.length; at++) {
    const { name, place } = fields[at]!
    let i = 0
    while (i < name.length && name[i] === bytes[start + i]) i++
    if (i === name.length) return place
  }
  return around.rest
}

/** Facts of one answer, chunk or event. */
export class AnswerFacts {
  /** Characters, weighed by script, of text, thought and code, and of the arguments of calls as JSON without white space. */
  characters = 0
  /** Those of them that are thought. */
  thoughtCharacters = 0
  /** Number of output strings, and the place of the last one, without its quotes. An answer that came in pieces has none. */
  spoken = 0
  spokenStart = -1
  spokenEnd = -1

  /** Short texts. The type of an event: */
  type: string | undefined
  model: string | undefined
  serviceTier: string | undefined
  /** The last reason to finish. */
  finish: string | undefined
  /** The id of a response. */
  id: string | undefined
  /** The type of a block that begins, its name, and the type of its content. */
  block: string | undefined
  blockName: string | undefined
  blockContent: string | undefined
  /** Why a model declined to answer. */
  category: string | undefined
  /** The type of an item, its id, its name, and the type of its action. */
  item: string | undefined
  itemId: string | undefined
  itemName: string | undefined
  itemAction: string | undefined
  /** A message at the top level: next to a code it is an error's. */
  message: string | undefined

  /** Texts of JSON, empty for what is broken off. Usage at its own place: */
  usage: string | undefined
  /** Usage of a choice, or in a provider's own field. */
  innerUsage: string | undefined
  /** Counts that Bedrock adds. */
  metrics: string | undefined
  error: string | undefined
  /** Of a response that has failed. */
  responseError: string | undefined
  /** The field in which some upstreams report the outcome. */
  outcome: string | undefined
  code: string | undefined

  /** The list of choices is not empty. */
  hasChoices = false
  /** A candidate has finished. */
  hasFinish = false
  isBlocked = false
  /** Content that is no text: a call, a picture. A prompt that was blocked is an answer too. */
  hasOtherContent = false
  /** Whether each candidate of the chunk finishes in it, by index; null where they are not told apart. */
  candidates: Map<number, boolean> | null = null
  /** Searches that the upstream made. */
  queries = 0
  /** Pages that it fetched. */
  pages = 0
  /** Pieces of code that it ran. */
  runs = 0
  /** It read places of a map. */
  hasMaps = false

  /** Characters before the current part. */
  #partStart = 0
  #isThought = false
  /** Of the current candidate. */
  #index = 0
  #isFinished = false

  /** Enters an object or a list. */
  enter({ is }: Place): void {
    if (is === undefined) return
    if (is === 'part') {
      this.#partStart = this.characters
      this.#isThought = false
    } else if (is === 'candidate') {
      this.#index = 0
      this.#isFinished = false
    } else if (is === 'maps') this.hasMaps = true
  }

  /** Notes that the object or list has items. */
  fill({ is, isContent }: Place, isList: boolean): void {
    if (isContent === true) this.hasOtherContent = true
    if (is === 'choices' && isList) this.hasChoices = true
  }

  leave({ is }: Place): void {
    if (is === 'part' && this.#isThought) this.thoughtCharacters += this.characters - this.#partStart
    else if (is === 'candidate')
      this.candidates = (this.candidates ?? new Map()).set(this.#index, this.#isFinished)
  }

  /** Takes a number, a boolean or null. */
  takeWord({ is, note }: Place, word: string): void {
    if (is === 'thought') this.#isThought = word === 'true'
    else if (is === 'index') this.#index = Number(word) || 0
    else if (is === 'json' && word !== 'null') note!(this, word)
  }

  takeText({ is, note }: Place, value: string): void {
    if (is === 'text') note!(this, value)
    else if (value !== '') {
      // Some upstreams have an empty one in each chunk: it is no reason.
      this.finish = value
      this.hasFinish = true
      this.#isFinished = true
    }
  }

  /** Takes a string whose text does not matter. */
  takeString({ is }: Place, isEmpty: boolean): void {
    if (is === 'page') this.pages++
    else if (is === 'run') this.runs++
    else if (isEmpty) return
    else if (is === 'query') this.queries++
    else if (is === 'made') this.hasOtherContent = true
    else if (is === 'block') {
      this.isBlocked = true
      this.hasOtherContent = true
    }
  }
}

/** Returns whether the text of a string at the place is read. */
export const readsText = ({ is }: Place): boolean => is === 'text' || is === 'finish'
