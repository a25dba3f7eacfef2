//! `#[derive(Module)]`: a struct of layers, parameters and plain settings becomes a module.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, parse_macro_input};

/// Implements `flambeau::nn::Module` field by field, in the order in which the fields are written.
///
/// Every field's type is itself a module: layers, `Parameter`, `Buffer`, `Mode`, `Option`, `Vec` and
/// `Box` of modules, and numbers, strings and truth values, which hold nothing. A field of any other
/// type is passed over with `#[module(skip)]`.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(input).unwrap_or_else(|e| e.to_compile_error()).into()
}

fn expand(input: DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(&input.ident, "a module is a struct: enums and unions have no fixed parameters"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(syn::Error::new_spanned(&input.ident, "a module's fields need names: they are the names of its parameters"));
    };
    let mut walks = Vec::new();
    for field in &fields.named {
        if skipped(field)? {
            continue;
        }
        let Some(ident) = &field.ident else { continue };
        let name = ident.to_string();
        let name = name.strip_prefix("r#").unwrap_or(&name).to_string();
        walks.push(quote! { path.enter(#name, |path| ::flambeau::nn::Module::walk(&self.#ident, path, visit)); });
    }
    let (name, (impls, types, wheres)) = (&input.ident, input.generics.split_for_impl());
    Ok(quote! {
        impl #impls ::flambeau::nn::Module for #name #types #wheres {
            fn walk(&self, path: &mut ::flambeau::nn::Path, visit: &mut dyn FnMut(&str, ::flambeau::nn::Slot<'_>)) {
                #(#walks)*
            }
        }
    })
}

/// Whether a field bears `#[module(skip)]`.
fn skipped(field: &syn::Field) -> syn::Result<bool> {
    let mut skip = false;
    for attribute in field.attrs.iter().filter(|a| a.path().is_ident("module")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("skip") {
                skip = true;
                Ok(())
            } else {
                Err(meta.error("the one thing to say here is `skip`"))
            }
        })?;
    }
    Ok(skip)
}
