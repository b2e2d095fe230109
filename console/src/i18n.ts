/** Languages. English texts are the ids; choosing another language loads its translations. */
import { useSyncExternalStore } from 'react'
import { fillIn } from './format.ts'

export const LANGUAGES = { en: 'English', zh: '中文' } as const
export type Language = keyof typeof LANGUAGES

const STORED = 'tollgate-language'

let language: Language = 'en'
let texts: Readonly<Record<string, string>> = {}
const listeners = new Set<() => void>()

const isLanguage = (text: string | null): text is Language => text !== null && Object.hasOwn(LANGUAGES, text)

/** Returns the language that the user chose, else the browser's, else English. */
export function choosePreferredLanguage(): Language {
  const stored = localStorage.getItem(STORED)
  if (isLanguage(stored)) return stored
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

export async function activateLanguage(chosen: Language): Promise<void> {
  texts = chosen === 'zh' ? (await import('./locales/zh.json')).default : {}
  language = chosen
  document.documentElement.lang = chosen
  for (const listener of listeners) listener()
}

export async function chooseLanguage(chosen: Language): Promise<void> {
  localStorage.setItem(STORED, chosen)
  await activateLanguage(chosen)
}

const onLanguage = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Returns the language; the component renders again when the user chooses another one. */
export const useLanguage = (): Language => useSyncExternalStore(onLanguage, () => language)

/** Translates a text and fills in its values. */
export const t = (message: string, values: Readonly<Record<string, unknown>> = {}): string =>
  fillIn(texts[message] ?? message, values)
