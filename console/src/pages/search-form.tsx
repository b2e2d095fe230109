/** The search of a list. It is in the URL. */
import { useState } from 'react'
import { useChangeSearch } from '../change-search.ts'
import { t } from '../i18n.ts'
import { Button } from '../ui/button.tsx'
import { Field, Form } from '../ui/form.tsx'

/** @param value the present search parameter `search` */
export function SearchForm({ label, value }: { readonly label: string; readonly value: string | undefined }) {
  const [typed, setTyped] = useState(value ?? '')
  const change = useChangeSearch()
  return (
    <Form className="mb-4 flex max-w-md items-end gap-2" onSubmit={() => change({ search: typed })}>
      <div className="flex-1">
        <Field label={label} type="search" value={typed} onText={setTyped} />
      </div>
      <Button type="submit">{t('Search')}</Button>
    </Form>
  )
}
