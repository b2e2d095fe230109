/** The JSON columns of a row, as SQL expressions over the values in `generator.ts`. */
import { iso, text, texts } from './draws.ts'
import { ERRORS, MODELS } from './population.ts'

/** Attempts beyond a single successful one: a second attempt, or the failure of the only one. */
export const ATTEMPTS = `
  multiIf(attempts_count != 2 AND status != 'error', '',
    concat('[{"seq":1,"created_at":"', ${iso('submitted_ms + 2')}, '","latency_ms":', toString(intDiv(latency_ms, 2)),
      ',"error_code":"', if(e = 0, 'upstream_error', error_code), '","error_message":"',
      if(e = 0, ${text(ERRORS[0]!.message)}, error_message), '"}',
      if(attempts_count = 2, concat(',{"seq":2,"created_at":"', ${iso('submitted_ms + intDiv(latency_ms, 2)')},
        '","latency_ms":', toString(intDiv(latency_ms, 2)), ',"error_code":null,"error_message":null}'), ''),
      ']'))`

/** In the format of `src/core/pricing/terms.ts`. */
const PRICE_TERMS = MODELS.map(({ unit, inputPrice, outputPrice }) =>
  unit === null
    ? `{"input":"${inputPrice}","cached_input":"${inputPrice / 10}","cache_write":"${inputPrice}","output":"${outputPrice}"}`
    : '',
)

/** Fields that a translation omits, with reasons. Each call has at least one. */
const LEFT_OUT = [
  'frequency_penalty: the upstream has no such parameter',
  'logit_bias: the upstream has no such parameter',
  'parallel_tool_calls: always on at the upstream',
  'tools[0].strict: schemas are not enforced there',
  'tools[1].strict: schemas are not enforced there',
  'tools[2].strict: schemas are not enforced there',
  'messages[0].name: names of authors are not passed on',
  'metadata: the upstream keeps none',
  'response_format.json_schema.strict: not enforced there',
]
const LEFT_OUT_MIN = 3
const LEFT_OUT_SPREAD = 4

/** `"key":value` for one call in `n`. */
const sometimes = (condition: string, key: string, value: string): string =>
  `if(${condition}, concat(',"${key}":', ${value}), '')`
const quote = (value: string): string => `concat('"', ${value}, '"')`

const IS_CHAT = 'NOT is_media'

/** In the format of `schemas/call-log/call-detail.ts`: 300 to 600 characters for calls that reached an upstream. */
export const DETAIL = `
  concat('{"prompt_bytes":', toString(4 * input_tokens + d6 % 90), ',"messages":', toString(1 + d8 % 9),
    ${sometimes(`${IS_CHAT} AND d7 % 3 != 0`, 'max_output_tokens', 'toString(256 * (1 + d7 % 16))')},
    ${sometimes(`${IS_CHAT} AND d7 % 4 != 1`, 'temperature', `concat('0.', toString(1 + d7 % 9))`)},
    ${sometimes(`${IS_CHAT} AND d7 % 5 = 1`, 'top_p', `concat('0.', toString(80 + d8 % 19))`)},
    ${sometimes(`${IS_CHAT} AND d8 % 7 = 1`, 'seed', 'toString(d8 % 100000)')},
    ${sometimes('d8 % 9 = 1', 'stop_sequences', 'toString(1 + d7 % 4)')},
    ${sometimes(`m = 6`, 'reasoning_effort', `${quote(`${texts(['low', 'medium', 'high'])}[1 + d8 % 3]`)}`)},
    ${sometimes(`${IS_CHAT} AND d1 % 5 < 2`, 'tools', `concat(toString(1 + d1 % 23), ',"tool_choice":"auto"')`)},
    ${sometimes(`${IS_CHAT} AND d1 % 6 = 0`, 'response_format', quote(`'json_schema'`))},
    ${sometimes(`status = 'error'`, 'upstream_status', `'500'`)},
    ${sometimes(`status != 'rejected'`, 'before_upstream_us', `concat(toString(300 + d4 % 900), ',"waiting_for_upstream_us":', toString(1000 * latency_ms - d4 % 997))`)},
    ${sometimes(`status != 'rejected'`, 'upstream_protocol', quote(`${texts(['messages', 'responses', 'generate-content', 'chat-completions'])}[1 + d2 % 4]`))},
    ${sometimes(
      `status != 'rejected'`,
      'left_out',
      quote(
        `arrayStringConcat(arraySlice(${texts(LEFT_OUT)}, 1 + d3 % ${LEFT_OUT_MIN}, ${LEFT_OUT_MIN} + d2 % ${LEFT_OUT_SPREAD}), '; ')`,
      ),
    )},
    ${sometimes(`is_charged AND ${IS_CHAT}`, 'prices', `${texts(PRICE_TERMS)}[m]`)}, '}')`
