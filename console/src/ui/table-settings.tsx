/** The dialog in which a reader lays out a table: its columns, their order and widths, and the height of rows. */
import { ArrowDown, ArrowUp } from 'lucide-react'
import { useState } from 'react'
import { t } from '../i18n.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { Actions, CheckField, CONTROL, SelectField } from './form.tsx'
import {
  AS_GIVEN,
  arrange,
  MIN_WIDTH_PX,
  storeCompact,
  storeLayout,
  type TableLayout,
  useCompact,
  useLayout,
} from './table-layout.ts'

interface TableSettingsProps {
  readonly table: string
  readonly columns: readonly { readonly name: string }[]
  /** The present widths of the columns that are seen. */
  readonly measured: TableLayout['widths']
  onClose(): void
}

export function TableSettings({ table, columns, measured, onClose }: TableSettingsProps) {
  const layout = useLayout(table)
  const isCompact = useCompact()
  const [resets, setResets] = useState(0)
  const arranged = arrange(columns, layout).map(({ column: { name }, isShown }) => ({
    name,
    isShown: isShown ?? true,
  }))
  const shown = arranged.filter(({ isShown }) => isShown)
  const choose = (changed: typeof arranged) => storeLayout(table, { ...layout, columns: changed })
  const move = (at: number, by: 1 | -1) => {
    const moved = [...arranged]
    moved.splice(at + by, 0, ...moved.splice(at, 1))
    choose(moved)
  }
  const widths = { ...measured, ...layout.widths }
  const size = (name: string, text: string) => {
    const px = Number.parseInt(text, 10)
    if (px >= MIN_WIDTH_PX) storeLayout(table, { ...layout, widths: { ...widths, [name]: px } })
  }
  return (
    <Dialog
      title={t('Columns and rows')}
      description={t('This browser remembers it for this table, and the height of rows for all tables.')}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <SelectField
          label={t('Height of rows')}
          value={isCompact ? 'compact' : 'comfortable'}
          onText={(text) => storeCompact(text === 'compact')}
          options={[
            ['comfortable', t('Comfortable')],
            ['compact', t('Compact')],
          ]}
        />
        <ol aria-label={t('Columns')} className="divide-y divide-line rounded-md border border-line">
          {arranged.map(({ name, isShown }, at) => (
            <li key={name} className="flex items-center gap-2 px-3 py-1.5">
              <div className="min-w-0 flex-1">
                <CheckField
                  label={name}
                  checked={isShown}
                  disabled={isShown && shown.length === 1}
                  onCheck={(isChecked) =>
                    choose(arranged.map((one) => (one.name === name ? { name, isShown: isChecked } : one)))
                  }
                />
              </div>
              <input
                type="number"
                min={MIN_WIDTH_PX}
                step={8}
                aria-label={t('Width of {column} in pixels', { column: name })}
                placeholder={t('Width')}
                className={`${CONTROL} max-w-24`}
                // Not controlled: a width that is being typed is too small at first.
                key={resets}
                defaultValue={widths[name]}
                onChange={({ target }) => size(name, target.value)}
              />
              <Button
                kind="quiet"
                className="px-2"
                aria-label={t('Move {column} up', { column: name })}
                disabled={at === 0}
                onClick={() => move(at, -1)}
              >
                <ArrowUp aria-hidden size={16} />
              </Button>
              <Button
                kind="quiet"
                className="px-2"
                aria-label={t('Move {column} down', { column: name })}
                disabled={at === arranged.length - 1}
                onClick={() => move(at, 1)}
              >
                <ArrowDown aria-hidden size={16} />
              </Button>
            </li>
          ))}
        </ol>
      </div>
      <Actions>
        <Button
          onClick={() => {
            storeLayout(table, AS_GIVEN)
            setResets(resets + 1)
          }}
        >
          {t('Reset')}
        </Button>
        <Button kind="primary" onClick={onClose}>
          {t('Done')}
        </Button>
      </Actions>
    </Dialog>
  )
}
