/** The values of a form: kept as a draft until they are sent, and guarded while their dialog closes. */
import { createContext, useContext, useEffect, useState } from 'react'
import { readDraft, storeDraft } from '../drafts.ts'

/** What a dialog and a form know of its fields. */
export interface Fields {
  readonly isChanged: boolean
  /** True if the form began with a draft. */
  readonly isRestored: boolean
  /** Goes back to what the form began with, and removes the draft. */
  forget(): void
  /** Takes what was sent as saved, and removes the draft. What its user has typed since then stays a change. */
  keep(): void
}

interface OpenDialog {
  readonly forms: Set<Fields>
  /** Closes the dialog; asks first if a form in it has changed. */
  close(): void
}

/** The dialog around a form; null on a page. */
export const OpenDialogContext = createContext<OpenDialog | null>(null)

/** Makes the dialog around a form ask before it closes with changes. */
export function useGuard(fields: Fields | undefined): void {
  const dialog = useContext(OpenDialogContext)
  useEffect(() => {
    if (dialog === null || fields === undefined) return
    dialog.forms.add(fields)
    return () => void dialog.forms.delete(fields)
  })
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

function findChanges<Values extends object>(saved: Values, values: Values): Partial<Values> {
  const changed = Object.entries(values).filter(
    ([name, value]) => !isSame(value, saved[name as keyof Values]),
  )
  return Object.fromEntries(changed) as Partial<Values>
}

/**
 * Keeps the values of a form; `field` and `check` make the properties of one field.
 * @param draft the name of the draft, with the id of what the form is about; null for secrets, which nothing keeps
 */
export function useFields<Values extends object>(draft: string | null, initial: Values | (() => Values)) {
  const given = typeof initial === 'function' ? initial() : initial
  const begun = JSON.stringify(given)
  const [{ saved, values, isRestored, ...former }, setState] = useState(() => {
    const kept = draft === null ? null : readDraft<Partial<Values>>(draft)
    return { begun, saved: given, values: { ...given, ...kept }, isRestored: kept !== null }
  })
  // Someone else has changed what the form is about: fields follow, except those that their user has changed.
  if (former.begun !== begun)
    setState({ begun, saved: given, values: { ...given, ...findChanges(saved, values) }, isRestored })
  const isChanged = Object.keys(findChanges(saved, values)).length > 0
  useEffect(() => {
    if (draft !== null) storeDraft(draft, isChanged ? findChanges(saved, values) : null)
  }, [draft, isChanged, saved, values])
  /** The form may be gone before an effect removes the draft. What its user has typed since it was sent is another. */
  const dropSent = () => {
    if (draft !== null && isSame(readDraft(draft), findChanges(saved, values))) storeDraft(draft, null)
  }
  const set = (changed: Partial<Values>) =>
    setState((now) => ({ ...now, values: { ...now.values, ...changed } }))
  return {
    saved,
    values,
    isChanged,
    isRestored: isRestored && isChanged,
    set,
    forget: () => {
      if (draft !== null) storeDraft(draft, null)
      setState((now) => ({ ...now, values: now.saved, isRestored: false }))
    },
    /** Empties the form, instead of `keep`, once it is sent. What its user has typed since then stays. */
    restart: () => {
      dropSent()
      setState((now) => ({
        ...now,
        values: isSame(now.values, values) ? now.saved : now.values,
        isRestored: false,
      }))
    },
    keep: () => {
      dropSent()
      setState((now) => {
        const names = Object.keys(findChanges(now.saved, now.values)) as (keyof Values)[]
        const sent = Object.fromEntries(names.map((name) => [name, values[name]]))
        return { ...now, saved: { ...now.saved, ...sent }, isRestored: false }
      })
    },
    field: <Name extends keyof Values & string>(name: Name) => ({
      name,
      value: values[name],
      onText: (text: string) => set({ [name]: text } as Partial<Values>),
    }),
    check: <Name extends keyof Values & string>(name: Name) => ({
      name,
      checked: Boolean(values[name]),
      onCheck: (isChecked: boolean) => set({ [name]: isChecked } as Partial<Values>),
    }),
  }
}
