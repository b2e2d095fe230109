/**
 * Requests answers in JSON by a schema from the messages protocol: by `output_config.format` where the model takes it,
 * else by one tool that the model has to call, whose arguments are the answer.
 */

import type { AnswerFormat, Setting } from '../../../../schemas/chat/conversation.ts'
import type { LooseObject } from '../../loose.ts'
import { invalidField } from '../../request/client-json.ts'
import type { DroppedFields } from '../../translate/dropped-fields.ts'
import type { ModelFamily } from './family.ts'
import { ReducedSchema, refersOnlyToDefinitions } from './reduced-schema.ts'

/** The tool by which a model answers that takes no `output_config.format`. No client may offer one of this name. */
export const ANSWER_TOOL = 'tollgate_json_answer'
const ANSWER_TOOL_DESCRIPTION = 'Gives the answer to the user. Call it once, with the whole answer.'

type OutputFormat =
  | { readonly type: 'output_config'; readonly value: LooseObject }
  | { readonly type: 'tool'; readonly tool: LooseObject }

interface OutputTarget {
  readonly family: ModelFamily
  /** The client offers tools, or the history has calls: the model must be free to call them. */
  readonly hasTools: boolean
  readonly thinks: boolean
}

/**
 * Returns the fields that enforce the format; null where nothing does, which is added to `dropped`.
 * @throws Failure `invalid_request` for a schema that is nested too deeply
 */
export function outputFormat(
  asked: Setting<AnswerFormat> | undefined,
  target: OutputTarget,
  dropped: DroppedFields,
): OutputFormat | null {
  if (asked === undefined) return null
  const { field, value: format } = asked
  const leaveOut = (note?: string): null => {
    dropped.add(field, note)
    return null
  }
  if (format.type !== 'schema') return leaveOut()
  const { schema, description } = format
  if (target.family.takesSchemas) {
    const reduced = new ReducedSchema(schema)
    if (reduced.isTooDeep) throw invalidField(format.path, 'it is nested too deeply')
    if (!refersOnlyToDefinitions(schema))
      return leaveOut('its schema refers to itself, or to another document')
    if (reduced.isLooser)
      dropped.change(field, 'without limits of its schema that this model cannot be held to')
    return {
      type: 'output_config',
      value: { format: { type: 'json_schema', schema: reduced.schema } },
    }
  }
  if (target.hasTools) return leaveOut('not together with tools for this model')
  if (target.thinks) return leaveOut('not together with thinking for this model')
  if (schema.type !== 'object') return leaveOut('this model answers with an object alone')
  const extra = description === null ? '' : ` ${description}`
  return {
    type: 'tool',
    tool: { name: ANSWER_TOOL, description: ANSWER_TOOL_DESCRIPTION + extra, input_schema: schema },
  }
}
