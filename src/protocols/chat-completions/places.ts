/** The places in a chunk, or a whole answer, of chat-completions that a meter reads. */
import { anywhere, FAILURES, fields, json, place, text } from '../answer/places.ts'

/** Upstreams have the parts of a choice at many places. */
const BELOW = anywhere((inside) => {
  const said = place({ ...inside, is: 'said' })
  const content = place({ ...inside, isContent: true })
  return {
    content: place({ ...said, isContent: true }),
    reasoning_content: said,
    reasoning: said,
    refusal: said,
    arguments: said,
    tool_calls: content,
    function_call: content,
    audio: content,
    images: content,
    // Says again what the text beside it says.
    logprobs: place({}),
    finish_reason: place({ ...inside, is: 'finish' }),
    usage: place({ each: inside, is: 'object', note: (facts, value) => (facts.innerUsage = value) }),
  }
})

const LATER = {
  choices: place({ ...BELOW, is: 'choices' }),
  usage: place({ is: 'object', note: (facts, value) => (facts.usage = value) }),
  // Next to a code, the text of an error, where there is no error object.
  code: json((facts, value) => (facts.code = value)),
  message: text((facts, value) => (facts.message = value), BELOW),
  msg: text((facts, value) => (facts.message = value), BELOW),
  ...FAILURES,
}
export const CHUNK = place({
  fields: fields({
    ...LATER,
    model: text((facts, value) => (facts.model = value), BELOW),
    service_tier: text((facts, value) => (facts.serviceTier = value), BELOW),
  }),
  rest: BELOW,
})
/** A chunk behind one that named the model: most others repeat that and the tier, and reading them takes long. */
export const LATER_CHUNK = place({ fields: fields(LATER), rest: BELOW })
