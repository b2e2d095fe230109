/**
 * What every driver does with its client: it holds the conversation of each case, and prints what the client saw as JSON.
 * Input is JSON on stdin: `{protocol, package, cases: [{baseUrl, key, model, prompt, tools, image, followUp, leaveAfterCharacters, hasTask, files}]}`.
 */
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/** A model that calls tools without end is left. */
const MOST_TURNS = 6
/** Of a case: many times what it takes on an idle machine. */
export const CASE_BOUND_SECONDS = 600

/** The tools that a case offers. */
export const toolNames = (count) => Array.from({ length: count }, (_, at) => `tool_${at + 1}`)
export const TOOL_SCHEMA = {
  type: 'object',
  properties: { place: { type: 'string' } },
  required: ['place'],
  additionalProperties: false,
}

export const printResult = ({ name, input }) => `${name} of ${input.place}`

/** The parts of a user's message in generate-content. */
export const toParts = (words, image) => {
  const inlineData = { mimeType: 'image/png', data: image?.slice(image.indexOf(',') + 1) }
  return [{ text: words }, ...(image === null ? [] : [{ inlineData }])]
}

async function converse(open, given) {
  const seen = { turns: [], hasLeft: false, error: null }
  let conversation
  try {
    conversation = open(given)
    conversation.say(given.prompt, given.image)
    let { followUp } = given
    while (seen.turns.length < MOST_TURNS) {
      const turn = { text: '', calls: [] }
      seen.turns.push(turn)
      // Yields the pieces of the text; returns the calls of tools, each with `name` and `input`.
      const pieces = conversation.turn()
      let calls = []
      for (;;) {
        const { done, value } = await pieces.next()
        if (done) {
          calls = value
          break
        }
        turn.text += value
        if (given.leaveAfterCharacters !== null && turn.text.length >= given.leaveAfterCharacters) {
          await pieces.return()
          seen.hasLeft = true
          return seen
        }
      }
      turn.calls = calls.map(({ name, input }) => ({ name, input }))
      if (calls.length > 0) conversation.answer(calls.map((call) => ({ ...call, result: printResult(call) })))
      else if (followUp !== null) {
        conversation.say(followUp, null)
        followUp = null
      } else return seen
    }
    throw new Error(`the model still calls tools after ${MOST_TURNS} turns`)
  } catch (error) {
    const status = error.status ?? error.statusCode ?? null
    const message = String(error.message).replaceAll(given.baseUrl, '').slice(0, 500)
    seen.error = { name: error.constructor.name, status, message }
    return seen
  } finally {
    conversation?.close?.()
  }
}

/** A case that hangs must not cost what is known of the others. */
async function giveUp() {
  await sleep(CASE_BOUND_SECONDS * 1000)
  const message = `it had not ended after ${CASE_BOUND_SECONDS} s`
  return { turns: [], hasLeft: false, error: { name: 'Driver', status: null, message } }
}

// Some clients leave a promise behind that nobody waits for, when their user hangs up.
process.on('unhandledRejection', () => {})

/** Takes the cases from stdin, all at once unless told otherwise, and prints what was seen in each. */
export async function drive(openWith, atOnce = Number.POSITIVE_INFINITY) {
  const { protocol, package: name, cases } = JSON.parse(await text(process.stdin))
  const seen = []
  const waiting = cases.entries()
  const runNext = async () => {
    for (const [at, given] of waiting)
      seen[at] = await Promise.race([converse(openWith(protocol, name), given), giveUp()])
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, cases.length) }, runNext))
  // A case that was given up may still hold something open.
  process.stdout.write(JSON.stringify(seen), () => process.exit())
}
