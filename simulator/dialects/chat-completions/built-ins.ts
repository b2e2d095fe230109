/** What built-in tools leave in an answer of the chat-completions dialect: citations and pictures. */

import type { Choice } from '../../answers/script.ts'

export function textOf(choice: Choice): string {
  return choice.text.join('')
}

/** Every source is cited for the whole text; positions are characters. */
export function annotationsOf(choice: Choice): unknown[] {
  const end = [...textOf(choice)].length
  return choice.searches.flatMap(({ sources }) =>
    sources.map(({ url, title }) => ({
      type: 'url_citation',
      url_citation: { start_index: 0, end_index: end, url, title },
    })),
  )
}

export function imagesOf(choice: Choice): unknown[] {
  return choice.pictures.map(({ base64 }, index) => ({
    type: 'image_url',
    index,
    image_url: { url: `data:image/png;base64,${base64}` },
  }))
}
